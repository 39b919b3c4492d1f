/** layouts - how the large receivers write their aggregate reports: names, order, namespaces, packing, media types. */

export type Packing = 'gzip' | 'zip' | 'plain'

export interface Layout {
  readonly name: string
  readonly reporter: string
  readonly organization: string
  readonly packing: Packing
  readonly contentType: string
  readonly encoding?: 'utf-8' | 'utf-16le' | 'windows-1251'
  /** Tag of the root with its namespace, and the prefix of all names. */
  readonly root?: string
  readonly prefix?: string
  readonly declaration?: string
  /** Elements that other receivers leave out. */
  readonly metadata?: string
  readonly policy?: string
  readonly identifiers?: string
  readonly upper?: boolean
  readonly indent?: boolean
}

export const XML = '<?xml version="1.0" encoding="UTF-8" ?>\n'
const DMARC_01 = 'feedback xmlns="http://dmarc.org/dmarc-xml/0.1"'
const XSI =
  'feedback xmlns:xsd="http://www.w3.org/2001/XMLSchema" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'

/** Receivers and their habits. */
export const LAYOUTS: readonly Layout[] = [
  {
    name: 'Google',
    reporter: 'google.com',
    organization: 'google.com',
    packing: 'zip',
    contentType: 'application/zip',
    indent: true,
    declaration: XML,
    metadata: '<extra_contact_info>https://support.google.com/a/answer/2466580</extra_contact_info>',
  },
  {
    name: 'Microsoft',
    reporter: 'microsoft.com',
    organization: 'Enterprise Outlook',
    packing: 'gzip',
    contentType: 'application/gzip',
    root: XSI,
    declaration: '<?xml version="1.0"?>\n',
    policy: '<fo>0</fo>',
    identifiers: '<envelope_to>outlook.example</envelope_to>',
  },
  {
    name: 'Yahoo',
    reporter: 'yahooinc.com',
    organization: 'Yahoo',
    packing: 'gzip',
    contentType: 'application/gzip',
    declaration: '<?xml version="1.0"?>',
    indent: true,
  },
  {
    name: 'Mail.ru',
    reporter: 'corp.mail.ru',
    organization: 'Mail.Ru',
    packing: 'gzip',
    contentType: 'application/octet-stream',
    declaration: XML,
    metadata: '<extra_contact_info>http://help.mail.ru/mail-help</extra_contact_info>',
  },
  {
    name: 'Fastmail',
    reporter: 'fastmaildmarc.com',
    organization: 'Fastmail Pty Ltd',
    packing: 'gzip',
    contentType: 'application/gzip',
    root: DMARC_01,
    declaration: XML,
    metadata: '<error>could not get SPF: &lt;timeout&gt; &amp; retry</error>',
  },
  {
    name: 'Comcast',
    reporter: 'comcast.net',
    organization: 'comcast.net',
    packing: 'gzip',
    contentType: 'text/xml',
    indent: true,
  },
  {
    name: 'Amazon',
    reporter: 'amazonses.com',
    organization: 'AMAZON-SES',
    packing: 'gzip',
    contentType: 'application/gzip',
    declaration: XML,
    root: DMARC_01,
    identifiers: '<envelope_from>bounce.shop.example</envelope_from>',
  },
  {
    name: 'GMX',
    reporter: 'gmx.net',
    organization: '1&amp;1 Mail &amp; Media GmbH',
    packing: 'gzip',
    contentType: 'application/x-gzip',
    declaration: XML,
  },
  {
    name: 'Zoho',
    reporter: 'zoho.com',
    organization: 'Zoho Corporation',
    packing: 'zip',
    contentType: 'application/x-zip-compressed',
    declaration: XML,
  },
  {
    name: 'Mimecast',
    reporter: 'mimecastreport.com',
    organization: 'Mimecast.org',
    packing: 'gzip',
    contentType: 'application/x-gzip',
    metadata: '<generator>Mimecast 9</generator>',
  },
  {
    name: 'Seznam',
    reporter: 'seznam.cz',
    organization: 'Seznam.cz a.s. \u010cesk\u00fd',
    packing: 'plain',
    contentType: 'text/xml',
    declaration: XML,
  },
  {
    name: 'RFC 9990',
    reporter: 'receiver.example',
    organization: 'Receiver',
    packing: 'gzip',
    contentType: 'application/gzip',
    root: 'feedback xmlns="urn:ietf:params:xml:ns:dmarc-2.0"',
    declaration: XML,
    policy: '<discovery_method>treewalk</discovery_method><testing>n</testing><np>reject</np>',
    identifiers: '<envelope_from>shop.example</envelope_from>',
  },
  {
    name: 'prefixed names',
    reporter: 'prefix.example',
    organization: 'Prefix',
    packing: 'zip',
    contentType: 'application/octet-stream',
    root: 'd:feedback xmlns:d="http://dmarc.org/dmarc-xml/0.1"',
    prefix: 'd:',
    declaration: XML,
  },
  {
    name: 'capital letters',
    reporter: 'upper.example',
    organization: 'UPPER',
    packing: 'plain',
    contentType: 'application/xml',
    upper: true,
  },
  {
    name: 'UTF-16',
    reporter: 'wide.example',
    organization: 'Wide \u20ac',
    packing: 'gzip',
    contentType: 'application/gzip',
    encoding: 'utf-16le',
    declaration: '<?xml version="1.0" encoding="utf-16"?>',
  },
  {
    name: 'windows-1251',
    reporter: 'pochta.example',
    organization: '\u041f\u043e\u0447\u0442\u0430',
    packing: 'zip',
    contentType: 'application/zip',
    encoding: 'windows-1251',
    declaration: '<?xml version="1.0" encoding="windows-1251"?>',
  },
]

export const TLS_LAYOUTS = [
  { name: 'Google TLS', reporter: 'google.com', contentType: 'application/tlsrpt+gzip', packing: 'gzip' },
  { name: 'Microsoft TLS', reporter: 'microsoft.com', contentType: 'application/tlsrpt+gzip', packing: 'gzip' },
  { name: 'plain TLS', reporter: 'plain.example', contentType: 'application/tlsrpt+json', packing: 'plain' },
  { name: 'zipped TLS', reporter: 'zip.example', contentType: 'application/zip', packing: 'zip' },
  { name: 'unlabelled TLS', reporter: 'octets.example', contentType: 'application/octet-stream', packing: 'gzip' },
] as const
