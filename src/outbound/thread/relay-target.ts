/** relay-target - the server that a relay URL names */

export interface RelayTarget {
  readonly host: string
  readonly port: number
  readonly isImplicitTls: boolean
  readonly auth: { readonly user: string; readonly pass: string } | null
  /** Whether STARTTLS with a valid certificate is required. */
  readonly isVerified?: boolean
}

/** Reads `smtp://user:pass@host:port` or `smtps://…`; null for anything else. Ports default to 25 and 465. */
export function parseRelayUrl(text: string): RelayTarget | null {
  if (!URL.canParse(text)) return null
  const url = new URL(text)
  if (!/^smtps?:$/.test(url.protocol) || url.hostname === '') return null
  const isImplicitTls = url.protocol === 'smtps:'
  const port = url.port === '' ? (isImplicitTls ? 465 : 25) : Number(url.port)
  const [user, pass] = [decoded(url.username), decoded(url.password)]
  if (user === null || pass === null) return null
  return { host: url.hostname.replace(/^\[|\]$/g, ''), port, isImplicitTls, auth: user === '' ? null : { user, pass } }
}

/** Null for a percent sign without two digits, or bytes that are no UTF-8. */
function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text)
  } catch {
    return null
  }
}
