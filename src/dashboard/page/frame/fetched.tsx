/** fetched - a page whose code comes when it is opened */
import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { probe, returns } from '../api/connection.ts'
import type { PageProps } from '../browser/page-props.ts'
import { Button } from '../parts/button.tsx'
import { Empty, Head, Skeleton } from '../parts/card.tsx'
import type { PageRow } from './pages.tsx'

/** Pages that have come. */
const there = new Map<string, ComponentType<PageProps>>()

/** Shows a page once its code is loaded. A new version of the service has other files; then the page is reloaded. */
export function FetchedPage({ row, ...props }: { row: PageRow } & PageProps) {
  const [Page, setPage] = useState<ComponentType<PageProps> | null>(() => there.get(row.path) ?? null)
  const [hasFailed, setFailed] = useState(false)
  const back = returns.value
  useEffect(() => {
    if (Page !== null) return
    setFailed(false)
    const fetchPage = row.page as () => Promise<ComponentType<PageProps>>
    fetchPage().then(
      (page) => {
        there.set(row.path, page)
        setPage(() => page)
      },
      () => {
        setFailed(true)
        void probe()
      },
    )
  }, [row, Page, back])
  if (hasFailed)
    return (
      <>
        <Head title={row.side?.word ?? 'Sendwright'} />
        <div class="card">
          <Empty icon="refresh" title="This page could not be loaded">
            <Button onPress={() => location.reload()}>Load again</Button>
          </Empty>
        </div>
      </>
    )
  return Page === null ? <Skeleton lines={6} /> : <Page {...props} key={`${props.serverId} ${props.id}`} />
}
