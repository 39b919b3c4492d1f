/** part-header - the header fields of a part (RFC 2045, RFC 2183, RFC 2392). */

import type { HeaderBlock, HeaderField } from './header-block.ts'
import { unfold } from './header-text.ts'
import { parseParameterised } from './parameter.ts'
import { parseTransferEncoding, type TransferEncoding } from './transfer.ts'

/** A part's description. */
export interface PartHeader {
  /** `type/subtype` in lower case. */
  readonly contentType: string
  readonly charset: string | null
  /** The boundary of a multipart, with one character per octet. Null if there is no usable one. */
  readonly boundary: string | null
  readonly isFlowed: boolean
  readonly isSpaceAdded: boolean
  /** Null if the field names none of RFC 2045. */
  readonly encoding: TransferEncoding | null
  /** `attachment` for any disposition but inline (RFC 2183 2.8); null for none. */
  readonly disposition: 'inline' | 'attachment' | null
  /** As it was written, null for none. */
  readonly fileName: string | null
  /** Without angle brackets. */
  readonly contentId: string | null
}

/** RFC 2045 5.1: tokens, without blanks and controls; octets beyond ASCII are let through. */
const TYPE = /^[^\s\x00-\x1f\x7f-\x9f()<>@,;:\\"/[\]?=]{1,127}\/[^\s\x00-\x1f\x7f-\x9f()<>@,;:\\"/[\]?=]{1,127}$/
const CONTENT_ID_CHARS_MAX = 2000

/** Reads the fields. `defaultType` is that of a part without the field (RFC 2046 5.1.5: message/rfc822 in a digest). */
export function readPartHeader({ fields }: HeaderBlock, defaultType: string): PartHeader {
  const find = (name: string): HeaderField | undefined => fields.find((field) => field.name.toLowerCase() === name)
  const textOf = (name: string): string => {
    const field = find(name)
    return field === undefined ? '' : unfold(field.value)
  }
  const typeField = find('content-type')
  const type = parseParameterised(textOf('content-type'))
  const disposition = parseParameterised(textOf('content-disposition'))
  const kind = disposition.value.toLowerCase()
  const fileName = disposition.parameters.get('filename') || type.parameters.get('name') || null
  const written = type.value.toLowerCase()
  const isFile = fileName !== null || (kind !== '' && kind !== 'inline')
  return {
    contentType: TYPE.test(written) ? written : typeField === undefined ? defaultType : typeOfInvalid(isFile),
    charset: type.parameters.get('charset') ?? null,
    boundary: typeField === undefined ? null : parseBoundary(typeField),
    isFlowed: type.parameters.get('format')?.toLowerCase() === 'flowed',
    isSpaceAdded: type.parameters.get('delsp')?.toLowerCase() === 'yes',
    encoding: parseTransferEncoding(textOf('content-transfer-encoding')),
    disposition: kind === '' ? null : kind === 'inline' ? 'inline' : 'attachment',
    fileName,
    contentId: readContentId(textOf('content-id')),
  }
}

/** A part with an unreadable type is plain text, unless it is a file (RFC 2045 5.2). */
function typeOfInvalid(isFile: boolean): string {
  return isFile ? 'application/octet-stream' : 'text/plain'
}

/** Read again from the octets, because a boundary that is not ASCII is compared unchanged. */
function parseBoundary({ value }: HeaderField): string | null {
  const line = value
    .toString('latin1')
    .replace(/\r?\n[ \t]/g, ' ')
    .trim()
  const boundary = parseParameterised(line).parameters.get('boundary') ?? ''
  return boundary === '' ? null : boundary
}

function readContentId(value: string): string | null {
  const id = (/<([^<>]*)>/.exec(value)?.[1] ?? value).trim().replace(/[\x00-\x1f\x7f-\x9f]/g, '')
  // A cut id would be another one.
  return id === '' || id.length > CONTENT_ID_CHARS_MAX ? null : id
}
