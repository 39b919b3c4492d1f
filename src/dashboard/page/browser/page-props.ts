/** page-props - the props of every page: the ids of its path, '' if missing */

export interface PageProps {
  readonly serverId: string
  readonly id: string
}
