/** page-props - what every page is given: the ids of its path, '' where it has none */

export interface PageProps {
  readonly serverId: string
  readonly id: string
}
