/**
 * compressed - large answers of the dashboard's interface, as gzip for browsers that take it
 *
 * A list of messages is 40 KB of JSON, and a page that is open reads it again and again. Small answers, among them
 * every one with a key or a secret, stay as they are. Cookies are SameSite=Strict, so no other page can cause an answer
 * whose length it could compare.
 *
 * Spec member.mirror
 */

import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { EdgeRequest } from '../../http/request.ts'
import type { Answer, Reply } from '../../http/respond.ts'
import { chooseEncoding } from './content-encoding.ts'

/** Shorter answers fit into a few packets. */
const CHARS_MIN = 4_096
/** Half the time of the default, for a tenth more bytes. */
const LEVEL = 4
const GZIP = { 'Content-Encoding': 'gzip', Vary: 'Accept-Encoding' } as const

const compress = promisify(gzip)

/** The handler with large answers compressed. */
export function compressing<Request extends Pick<EdgeRequest<unknown>, 'acceptEncoding'>>(
  handle: (request: Request) => Promise<Answer> | Answer,
): (request: Request) => Promise<Answer> {
  return async (request) => {
    const answer = await handle(request)
    const isTaken = chooseEncoding({ br: false, gzip: true }, request.acceptEncoding) === 'gzip'
    return isTaken && 'status' in answer && answer.status === 200 && answer.json !== undefined
      ? compressed(answer)
      : answer
  }
}

async function compressed({ json, ...answer }: Reply): Promise<Reply> {
  const text = JSON.stringify(json)
  if (text.length < CHARS_MIN) return { ...answer, json }
  const bytes = await compress(text, { level: LEVEL })
  return { ...answer, bytes, contentType: 'application/json', headers: { ...answer.headers, ...GZIP } }
}
