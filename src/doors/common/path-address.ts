/**
 * path-address - the address or id in a path of a door
 */

import type { EdgeRequest } from '../../http/request.ts'

/** A parameter of the path, decoded; '' if it cannot be decoded. */
export function decodeParam({ params }: Pick<EdgeRequest, 'params'>, name: string): string {
  try {
    return decodeURIComponent(params[name] ?? '')
  } catch {
    return ''
  }
}
