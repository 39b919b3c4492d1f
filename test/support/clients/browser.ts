/**
 * browser - the part of a browser that the dashboard needs: it keeps cookies, sends its origin and exchanges JSON.
 *
 * `address` is the client's address in X-Forwarded-For, by which limits count.
 */

export interface Page {
  readonly status: number
  readonly headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: a test reads what it expects.
  readonly json: any
  readonly text: string
}

export class Browser {
  readonly origin: string
  readonly address: string
  /** The cookie of the session or of a step of a sign-in. */
  cookie: string | null = null
  /** For a browser in which a user is signed in. */
  device: string | null = null

  constructor(origin: string, address = '192.0.2.1') {
    this.origin = origin
    this.address = address
  }

  /** Calls a route below `/dashboard/api`. In: `POST /session`. */
  async call(what: string, body?: unknown, headers: Readonly<Record<string, string>> = {}): Promise<Page> {
    const [method = '', path = ''] = what.split(' ')
    const answer = await fetch(`${this.origin}/dashboard/api${path}`, {
      method,
      headers: {
        'x-forwarded-for': this.address,
        ...(method !== 'GET' && { origin: this.origin }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...((this.cookie ?? this.device) && { cookie: [this.cookie, this.device].filter(Boolean).join('; ') }),
        ...headers,
      },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    for (const set of answer.headers.getSetCookie()) {
      const [cookie = ''] = set.split(';')
      if (cookie.includes('-device=')) this.device = cookie
      else this.cookie = cookie.endsWith('=') ? null : cookie
    }
    const text = await answer.text()
    const isJson = answer.headers.get('content-type') === 'application/json'
    return { status: answer.status, headers: answer.headers, text, json: isJson ? JSON.parse(text) : null }
  }

  /** The token of a link's URL. */
  static tokenOf(url: string): string {
    return url.slice(url.indexOf('#') + 1)
  }
}
