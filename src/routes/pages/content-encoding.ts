/** content-encoding - which encoding of a prepared file a client gets */

/** The encodings that a file was prepared in. */
export interface Encodings {
  readonly br: boolean
  readonly gzip: boolean
}

/** RFC 9110 12.5.3, as far as browsers need it: an encoding is used if it is named with a weight above 0. */
export function chooseEncoding({ br, gzip }: Encodings, accepted: string): 'br' | 'gzip' | null {
  const takes = (name: string) =>
    new RegExp(`(?:^|,)\\s*${name}\\s*(?:;(?!\\s*q=0(?:\\.0*)?\\s*(?:,|$))|,|$)`, 'i').test(accepted)
  if (br && takes('br')) return 'br'
  return gzip && takes('gzip') ? 'gzip' : null
}
