/** export - the button that saves a list as CSV, with the filters that are shown */
import type { ComponentChildren } from 'preact'
import { fetchFile } from '../api/call.ts'
import { findServer, may } from '../api/session.ts'
import { Button } from './button.tsx'
import { say } from './toast.tsx'

interface ExportProps {
  /** The route of the export. */
  readonly path: string
  readonly filters?: Readonly<Record<string, string>>
  /** The server whose addresses the file has. */
  readonly of?: string
  readonly children?: ComponentChildren
}

/** The button; it is not shown to users who may not export the addresses of a live server. */
export function ExportButton({ path, filters = {}, of, children = 'Export CSV' }: ExportProps) {
  if (of !== undefined && findServer(of)?.mode !== 'test' && !may('write')) return null
  const save = async () => {
    const file = await fetchFile(path, filters)
    const link = document.createElement('a')
    link.href = URL.createObjectURL(file)
    link.download = `${path.split('/').at(-2)}-${new Date().toISOString().slice(0, 10)}.csv`
    link.click()
    URL.revokeObjectURL(link.href)
    say('The export is complete')
  }
  return (
    <Button icon="download" onPress={save}>
      {children}
    </Button>
  )
}
