/** product-patterns - the regular expressions of the product, and bounds of the texts for those that are not linear */
import { HTTPS_URI } from '../../../schemas/webhook.ts'
import { NEUTRAL, RULES, VETOES } from '../../../src/mail/reply-rules.ts'
import { type Pattern, patternsOf, productSyntax } from './syntax.ts'

export interface Bound {
  readonly charsMax: number
  readonly why: string
}

const OPTION = { charsMax: 256, why: "an option of the user's own command line" }
const SETTING = { charsMax: 2_048, why: 'a setting of the operator' }

/** By file, or by file and beginning of the pattern. */
export const BOUNDED: Readonly<Record<string, Bound>> = {
  'schemas/document/declarations.ts': { charsMax: 2_048, why: 'a description of our own schemas' },
  'src/cli/broadcast.ts': OPTION,
  'src/client/exchange.ts': { charsMax: 2_048, why: 'the base URL that the program itself gives' },
  'src/client/make.mjs': { charsMax: 2_048, why: 'our own sources' },
  'src/cli/send.ts': OPTION,
  'src/cli/console/client.ts': { charsMax: 2_048, why: 'a URL of the command line' },
  'src/content/s3-wire.ts': SETTING,
  'src/dashboard/password.ts': { charsMax: 128, why: 'base64 of our own salt and hash' },
  'src/mail/compose/compose.ts': { charsMax: 998, why: 'a subject or header value, bounded by the schema' },
  'src/mail/ip-address.ts': { charsMax: 64, why: 'an address of a socket' },
  'src/mail/reply-rules.ts': { charsMax: 512, why: 'readWords cuts a reply at 512 characters' },
  'src/mail/reply-words.ts': { charsMax: 512, why: 'readWords and quotedReply cut a reply at 512 characters' },
  'src/mail/reply.ts': { charsMax: 4_096, why: 'formatReply cuts at 4,096 characters, and so do fields of a report' },
  'src/mail/report/dsn-text.ts': { charsMax: 6_000, why: 'ownText and subjectOf cut a report at 6,000 characters' },
  'src/mail/report/dsn-words.ts': { charsMax: 6_000, why: 'ownText and subjectOf cut a report at 6,000 characters' },
  'src/mail/report/dsn.ts': { charsMax: 4_096, why: 'fields of a report are cut at 4,096 characters' },
  'src/mail/simulator.ts': { charsMax: 254, why: 'a valid address' },
  'src/mail/unsubscribe-token.ts': { charsMax: 2_048, why: 'BASE_URL' },
  'src/process/log.ts': { charsMax: 16_384, why: 'a line of the log is cut at 16,384 characters' },
  'src/process/setting.ts': SETTING,
  'src/sending/submitted-header.ts': { charsMax: 2_000, why: 'readMailbox refuses a longer field' },
  'src/service/bundle.mjs': { charsMax: 256, why: 'a file name of a package that is built in' },
  'src/webhooks/post.ts': { charsMax: 512, why: 'bytes of the response that are kept' },
}

/** Patterns that are built at run time: the expression, and examples of the result. */
export const MADE: Readonly<Record<string, readonly (readonly [source: string, flags: string])[]>> = {
  'cluster/slots/finish-slot.ts': [['\\[1234->-(\\w+)\\]', '']],
  'schemas/document/declarations.ts': [['\\bname\\b', '']],
  'schemas/broadcast.ts': [['^[A-Za-z0-9_]{1,64}$', 'u']],
  'src/doors/mailgun/broadcast.ts': [['^[A-Za-z0-9_]{1,40}$', '']],
  'src/http/shape/formats.ts': [[HTTPS_URI, 'u']],
  // A pattern of a schema. All of these are listed here.
  'src/http/shape/issues.ts': [],
  'src/mail/compose/template.ts': [['\\{\\{[ \\t]*([A-Za-z0-9_]{1,64})[ \\t]*\\}\\}', 'y']],
  'src/mail/html-tags.ts': [['</script', 'gi']],
  'src/mail/reply-rules.ts': [...NEUTRAL.map((text) => ({ text, not: undefined })), ...RULES, ...VETOES].flatMap(
    ({ text, not }) => [text, not].flatMap((one) => (one ? [[one.source, one.flags] as const] : [])),
  ),
  'src/routes/pages/content-encoding.ts': [['(?:^|,)\\s*gzip\\s*(?:;(?!\\s*q=0(?:\\.0*)?\\s*(?:,|$))|,|$)', 'i']],
  'src/store/cluster/move-shards.ts': [['^cluster_current_epoch:(\\d+)', 'm']],
}

/** The identity of a pattern. */
export const keyOf = ({ source, flags }: Pick<Pattern, 'source' | 'flags'>): string => `/${source}/${flags}`

/** All of them, one row for each place. */
export function productPatterns(): readonly Pattern[] {
  const made = Object.entries(MADE).flatMap(([path, of]) => of.map(([source, flags]) => ({ path, source, flags })))
  return [...productSyntax().flatMap(patternsOf), ...made]
}

/** The row of a pattern. */
export function boundOf({ path, source }: Pattern): Bound | undefined {
  const row = Object.keys(BOUNDED).find(
    (key) => key.startsWith(`${path} `) && source.startsWith(key.slice(path.length + 1)),
  )
  return BOUNDED[row ?? path]
}
