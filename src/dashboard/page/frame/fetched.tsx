/** fetched - a page whose code comes when it is opened */
import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { PageProps } from '../browser/page-props.ts'
import { Button } from '../parts/button.tsx'
import { Empty, Skeleton } from '../parts/card.tsx'
import type { PageRow } from './pages.tsx'

/** Pages that have come. */
const there = new Map<string, ComponentType<PageProps>>()

/** Shows a page once its code is loaded. A new version of the service has other files; then the page is reloaded. */
export function FetchedPage({ row, ...props }: { row: PageRow } & PageProps) {
  const [Page, setPage] = useState<ComponentType<PageProps> | null>(() => there.get(row.path) ?? null)
  const [hasFailed, setFailed] = useState(false)
  useEffect(() => {
    if (Page !== null) return
    const fetchPage = row.page as () => Promise<ComponentType<PageProps>>
    fetchPage().then(
      (page) => {
        there.set(row.path, page)
        setPage(() => page)
      },
      () => setFailed(true),
    )
  }, [row, Page])
  if (hasFailed)
    return (
      <div class="card">
        <Empty icon="refresh" title="This page could not be loaded">
          <Button onPress={() => location.reload()}>Load again</Button>
        </Empty>
      </div>
    )
  return Page === null ? <Skeleton lines={6} /> : <Page {...props} key={`${props.serverId} ${props.id}`} />
}
