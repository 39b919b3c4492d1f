/**
 * address-list - the mailboxes of an address field (RFC 5322 3.4): groups flattened, comments dropped, names decoded.
 *
 * Spec inbound.parse.addresses
 */

import addressparser from 'nodemailer/lib/addressparser'
import { cutValue, decodeWords, stripValue, VALUE_CHARS_MAX } from './header-text.ts'

/** Addresses of a list that are kept. */
export const ADDRESSES_MAX = 1000

/** A mailbox of a received mail. */
export interface MailAddress {
  readonly address: string
  readonly name: string | null
}

/** The mailboxes of a field. */
export interface AddressList {
  /** The first 1,000. */
  readonly addresses: readonly MailAddress[]
  /** All that there are. */
  readonly count: number
  readonly hadControls: boolean
  /** A name was cut, or an address of more than 2,000 characters was left out. */
  readonly isCut: boolean
}

/**
 * Reads a list. Takes the field's values in one line each, encoded words as they are. Entries without an address are
 * left out.
 */
export function readAddressList(values: readonly string[]): AddressList {
  const parsed = values
    .flatMap((value) => addressparser(value, { flatten: true }))
    .filter(({ address }) => address !== '')
  const short = parsed.filter(({ address }) => address.length <= VALUE_CHARS_MAX)
  let hadControls = false
  let isCut = short.length !== parsed.length
  const addresses = short.slice(0, ADDRESSES_MAX).map((one) => {
    const address = stripValue(one.address)
    const name = stripValue(decodeWords(one.name).trim())
    const kept = cutValue(name.text)
    hadControls ||= address.isChanged || name.isChanged
    isCut ||= kept.isChanged
    return { address: address.text, name: kept.text === '' ? null : kept.text }
  })
  return { addresses, count: parsed.length, hadControls, isCut }
}
