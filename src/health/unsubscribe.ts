/**
 * unsubscribe - whether the links in mail on broadcast streams lead anywhere that a reader's mail program may post to
 *
 * Spec operator.health, unsubscribe.fields
 */

import { BlockList, isIP } from 'node:net'
import type { Finding } from '../../schemas/operator/health.ts'
import { warning, well } from './finding.ts'

const FIX = 'Set BASE_URL to the public https address of the API, and run its proxy there'
const LOCAL = new BlockList()
for (const [network, prefix] of [
  ['127.0.0.0', 8],
  ['10.0.0.0', 8],
  ['172.16.0.0', 12],
  ['192.168.0.0', 16],
] as const)
  LOCAL.addSubnet(network, prefix, 'ipv4')
LOCAL.addAddress('::1', 'ipv6')

/** `baseUrl` is the service's public address, from BASE_URL. */
export function examineUnsubscribe(baseUrl: string): Finding {
  const { protocol, hostname } = new URL(baseUrl)
  const host = hostname.replace(/^\[|\]$/g, '')
  const family = isIP(host)
  const isLocal = host === 'localhost' || (family !== 0 && LOCAL.check(host, family === 4 ? 'ipv4' : 'ipv6'))
  if (isLocal) return warning('unsubscribe', `Unsubscribe links lead to ${host}, which recipients cannot open`, FIX)
  if (protocol !== 'https:')
    return warning(
      'unsubscribe',
      'Unsubscribe links are not https: mail on broadcast streams offers no one-click unsubscribe (RFC 8058), which large receivers require',
      FIX,
    )
  return well('unsubscribe', `Unsubscribe links lead to ${baseUrl}`)
}
