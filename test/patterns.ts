/**
 * patterns - every regular expression of the product takes a time that grows with its text, not with its square, or its
 * text is bounded
 *
 * `recheck` judges a pattern. That takes minutes for all of them, so its verdicts are kept in fixtures/patterns.jsonl;
 * a pattern that is not there is judged here, and `node build/test/patterns.js --write` keeps it. The deep tier judges
 * all of them again. A pattern that is not safe needs a row below: how long its text can be, and why. With the worst
 * text of that length that recheck knows it is run here.
 */
import t from 'tap'
import { HTTPS_URI } from '../schemas/webhook.ts'
import { NEUTRAL, RULES, VETOES } from '../src/mail/reply-rules.ts'
import { type Judged, judgePattern, readVerdicts, worstTexts, writeVerdicts } from './support/tidy/judge-pattern.ts'
import { madePatternsOf, type Pattern, patternsOf, productSyntax, syntaxOf } from './support/tidy/syntax.ts'

/** What an attack may hold the loop for. */
const CPU_MS_MAX = 100

interface Bound {
  readonly charsMax: number
  readonly why: string
}

const OPTION = { charsMax: 256, why: "an option of the user's own command line" }
const SETTING = { charsMax: 2_048, why: 'a setting of the operator' }

/** By file, or by file and beginning of the pattern. */
const BOUNDED: Readonly<Record<string, Bound>> = {
  'src/cli/broadcast.ts': OPTION,
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

/** Patterns that are made at run time: the expression, and patterns as it makes them. */
const MADE: Readonly<Record<string, readonly (readonly [source: string, flags: string])[]>> = {
  'cluster/slots/finish-slot.ts': [['\\[1234->-(\\w+)\\]', '']],
  'schemas/broadcast.ts': [['^[A-Za-z0-9_]{1,64}$', 'u']],
  'src/http/shape/formats.ts': [[HTTPS_URI, 'u']],
  // A pattern of a schema, all of which are here.
  'src/http/shape/issues.ts': [],
  'src/mail/compose/template.ts': [['\\{\\{[ \\t]*([A-Za-z0-9_]{1,64})[ \\t]*\\}\\}', 'y']],
  'src/mail/reply-rules.ts': [...NEUTRAL.map((text) => ({ text, not: undefined })), ...RULES, ...VETOES].flatMap(
    ({ text, not }) => [text, not].flatMap((one) => (one ? [[one.source, one.flags] as const] : [])),
  ),
  'src/routes/pages/content-encoding.ts': [['(?:^|,)\\s*gzip\\s*(?:;(?!\\s*q=0(?:\\.0*)?\\s*(?:,|$))|,|$)', 'i']],
  'src/store/cluster/move-shards.ts': [['^cluster_current_epoch:(\\d+)', 'm']],
}

const keyOf = ({ source, flags }: Pick<Pattern, 'source' | 'flags'>) => `/${source}/${flags}`
const all = productSyntax()
const patterns: readonly Pattern[] = [
  ...all.flatMap(patternsOf),
  ...Object.entries(MADE).flatMap(([path, made]) => made.map(([source, flags]) => ({ path, source, flags }))),
]
const kept = new Map(readVerdicts().map((one) => [keyOf(one), one]))
for (const one of patterns) if (!kept.has(keyOf(one))) kept.set(keyOf(one), await judgePattern(one))

if (process.argv.includes('--write')) {
  const used = new Set(patterns.map(keyOf))
  const rows = [...kept].filter(([key]) => used.has(key)).sort(([one], [other]) => (one < other ? -1 : 1))
  writeVerdicts(rows.map(([, row]) => row))
}

function boundOf({ path, source }: Pattern): Bound | undefined {
  const row = Object.keys(BOUNDED).find(
    (key) => key.startsWith(`${path} `) && source.startsWith(key.slice(path.length + 1)),
  )
  return BOUNDED[row ?? path]
}

t.test('patterns: every one is found, in literals, schemas and calls', async (t) => {
  t.ok(new Set(patterns.map(keyOf)).size > 500)
  const text = "const a = /x+/gi\nconst b = { pattern: '^y$' }\nconst c = new RegExp(a, 'u')\nRegExp('w')\n"
  const planted = syntaxOf({ path: 'schemas/planted.ts', text })
  t.same(patternsOf(planted).map(keyOf), ['/x+/gi', '/^y$/u'])
  t.equal(madePatternsOf(planted).length, 2)
})

t.test('patterns: each that is made at run time is listed', async (t) => {
  const made = new Set(all.flatMap(madePatternsOf).map(({ path }) => path))
  t.same([...made].sort(), Object.keys(MADE).sort())
})

t.test('patterns: each is linear, or has a bound of its text', async (t) => {
  const unsafe = patterns.filter((one) => kept.get(keyOf(one))?.verdict !== 'safe')
  for (const one of unsafe) {
    const bound = boundOf(one)
    const { verdict } = kept.get(keyOf(one)) as Judged
    if (bound === undefined)
      t.fail(`${one.path}: ${keyOf(one)} is ${verdict}: rewrite it, or bound its text and add a row`)
  }
  const used = new Set(unsafe.map(boundOf))
  t.same(
    Object.entries(BOUNDED).flatMap(([key, bound]) => (used.has(bound) ? [] : [key])),
    [],
    'no row is left over',
  )
  t.match(await judgePattern({ source: '^bytes=\\s*(\\d*)\\s*-\\s*(\\d*)\\s*-$', flags: '' }), {
    verdict: /polynomial/,
  })
})

t.test('patterns: the worst text within the bound is matched in time', async (t) => {
  const slow: string[] = []
  for (const one of patterns) {
    const judged = kept.get(keyOf(one)) as Judged
    const bound = boundOf(one)
    if (judged.verdict === 'safe' || bound === undefined) continue
    for (const text of worstTexts(judged, bound.charsMax)) {
      const before = process.cpuUsage()
      // With the flag `g` it is tried at every place, as a replacement does.
      text.replace(new RegExp(one.source, one.flags.replace('y', 'g')), '')
      const { user } = process.cpuUsage(before)
      if (user / 1000 > CPU_MS_MAX) slow.push(`${one.path}: ${keyOf(one)} ${Math.round(user / 1000)} ms`)
    }
  }
  t.same(slow, [])
})
