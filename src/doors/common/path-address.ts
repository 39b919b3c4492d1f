/**
 * path-address - the address or id in a path of a door
 */

import type { EdgeRequest } from '../../http/request.ts'

/** A parameter of the path, decoded; '' if it cannot be decoded. */
export function decodeParam({ params }: Pick<EdgeRequest, 'params'>, name: string): string {
  const raw = params[name] ?? ''
  if (!raw.includes('%')) return raw
  try {
    return decodeURIComponent(raw)
  } catch {
    return ''
  }
}
