/**
 * file-head - the headers of a file that is downloaded, and its position in the path
 *
 * Spec inbound.attachment, message.attachment
 */

import type { Download } from '../../http/respond.ts'

/** Browsers must treat received content as nothing but bytes. */
const BYTES_ONLY = { 'X-Content-Type-Options': 'nosniff' } as const
const POSITION = /^\d{1,3}$/
/** A media type that is safe in a header line; any other becomes a generic type. */
const MEDIA_TYPE = /^[a-z0-9!#$&^_.+-]{1,127}\/[a-z0-9!#$&^_.+-]{1,127}$/

/** The position in a path, from 0, below `count`; null if it is none. */
export function parsePosition(text: string, count: number): number | null {
  return POSITION.test(text) && Number(text) < count ? Number(text) : null
}

/** Media type and headers of a file. */
export function formatFileHead(contentType: string, name: string | null): Pick<Download, 'contentType' | 'headers'> {
  return {
    contentType: MEDIA_TYPE.test(contentType) ? contentType : 'application/octet-stream',
    headers: { ...BYTES_ONLY, ...formatDisposition(name) },
  }
}

/** RFC 6266: the name in UTF-8, and in ASCII for clients without support for it. */
export function formatDisposition(name: string | null): { 'Content-Disposition': string } {
  if (name === null) return { 'Content-Disposition': 'attachment' }
  const plain = name.replace(/[^\x20-\x7e]|["\\%]/g, '_')
  const extended = plain === name ? '' : `; filename*=UTF-8''${encodeName(name)}`
  return { 'Content-Disposition': `attachment; filename="${plain}"${extended}` }
}

/**
 * RFC 8187 3.2: `encodeURIComponent` leaves some characters that the header must not have. Lone surrogates are
 * replaced first.
 */
function encodeName(name: string): string {
  const whole = Buffer.from(name).toString()
  return encodeURIComponent(whole).replace(/['()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
}
