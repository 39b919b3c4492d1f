/** main - `npm run bench -- <name>`: parses the arguments and runs the measurement */

import { parseArgs } from 'node:util'
import { CONTESTANTS } from './contestants/contestant.ts'
import { benchAccept } from './figures/accept.ts'
import { benchBroadcast } from './figures/broadcast.ts'
import { benchContent } from './figures/content.ts'
import { benchDelivery } from './figures/delivery.ts'
import { benchDoors } from './figures/doors.ts'
import { benchErasure } from './figures/erasure.ts'
import { benchFeed } from './figures/feed.ts'
import { benchInbound } from './figures/inbound.ts'
import { benchJudge } from './figures/judge.ts'
import { benchLifecycle } from './figures/lifecycle.ts'
import { benchMemory } from './figures/memory.ts'
import { benchPrimaries } from './figures/primaries.ts'
import { benchReports } from './figures/reports.ts'
import { benchRestart } from './figures/restart.ts'
import { benchScale } from './figures/scale.ts'
import { benchCold } from './figures/sealed/cold.ts'
import { benchPersons } from './figures/sealed/persons.ts'
import { benchSealed } from './figures/sealed/sealed.ts'
import { benchSearch } from './figures/search.ts'
import { benchSizing } from './figures/sizing.ts'
import { benchStart } from './figures/start.ts'
import { benchSubmission } from './figures/submission.ts'
import { benchWebhooks } from './figures/webhooks.ts'
import { benchPage } from './page.ts'

const HELP = `Usage: npm run bench -- <name> [options]

  accept      messages a second accepted, against the bare floor and BullMQ
  memory      bytes of Redis that a delivered message keeps
  sizing      bytes that a message of usual size takes of memory and disk, with content and a webhook
  lifecycle   messages a second from acceptance to a receiving server
  search      milliseconds of a search among very many messages of one server
  delivery    from 200 to the first byte; living destinations beside dead ones
  scale       messages a second accepted by 1, 2 and 4 processes with the actors
  primaries   processor time of Redis a message: three primaries of a cluster, against one Redis
  webhooks    signed posts a second; first attempts beside receivers that hang
  feed        events a second with and without a feed; from an event to who listens; all that is kept once more
  start       seconds from the start to the first 200; cost of an idle process
  restart     seconds from SIGTERM to the first 200 of the next process, with messages in the store
  submission  messages a second over SMTP, against Postfix and the API
  judge       milliseconds to judge a received mail: usual, of 35 MB, and made to be slow
  reports     milliseconds to parse a bounce or complaint: usual, and made to be slow
  inbound     mails that come in a second, against Postfix; parsed with their event committed; bytes of Redis; what
              others feel of mails of 35 MB
  erasure     seconds to erase a person with 100,000 messages sent and 10,000 received, and what others feel of it
  doors       what a message costs through the API of another provider, against our own route
  broadcast   50,000 recipients in one request: its 202, its release, what others feel, bytes of Redis
  content     mails with attachments accepted a second, in files and in Redis, and what Redis keeps of them

  page        the figures of docs/understand/performance.md, in some eight minutes
  cold        a store of thirteen months, filled with a moved clock and copied to 13 million messages: memory, disk, start,
              reading, searching, erasing, and the whole machine while it seals, rewrites its file and makes a backup

Options
  --seconds N   length of each measurement (accept, lifecycle, scale; default 10)
  --rounds N    repetitions (accept, restart, start, submission; default 3)
  --warm-up N   seconds of load before each measurement (accept, scale; default 10)
  --only IDS    contestants of accept: ${CONTESTANTS.map(({ id }) => id).join(',')} (default a,b,c,c1,c2,d);
                loads of webhooks: all,one,beside; of inbound: rate,bytes,large
  --messages N  messages (memory and restart: 100,000; lifecycle: the burst, 20,000; search: 1,000,000; webhooks: posts, 20,000;
                content: 1,000; feed: events, 10,000; submission and inbound: of each connection, 300 and 200;
                judge: mails, 5,000; broadcast: recipients, 50,000; erasure: sent, 100,000, and a tenth of it
                received)
  --kib N       content: KiB of attachment in each message (200)
  --mx          lifecycle: to the mail servers of 20 sites instead of a relay
  --rate N      messages a second (lifecycle: nine tenths of the burst; delivery: 200)
  --held        primaries: messages are accepted and wait
  --persons N   memory: of an address instead, in an account of up to N
  --sealed      memory: of messages that have left Redis for the content store, and what sealing and reading take
  --dead N      delivery: dead destinations (100), each with --messages waiting (1,000)
  --profile     accept: functions with the most time of their own, and a .cpuprofile in data/
  --help        this text
`

const SEARCHES = 1_000
const CONTESTANTS_USUAL = ['a', 'b', 'c', 'c1', 'c2', 'd']

const OPTIONS = {
  seconds: { type: 'string' },
  rounds: { type: 'string' },
  'warm-up': { type: 'string' },
  only: { type: 'string' },
  messages: { type: 'string' },
  profile: { type: 'boolean' },
  mx: { type: 'boolean' },
  rate: { type: 'string' },
  dead: { type: 'string' },
  kib: { type: 'string' },
  held: { type: 'boolean' },
  persons: { type: 'string' },
  sealed: { type: 'boolean' },
  help: { type: 'boolean' },
} as const

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({ options: OPTIONS, allowPositionals: true })
  const seconds = readNumber('seconds', values.seconds, 10)
  const rounds = readNumber('rounds', values.rounds, 3)
  const warmUpSeconds = readNumber('warm-up', values['warm-up'], 10)
  const times = { seconds, rounds, warmUpSeconds }
  const only = values.only?.split(',')
  if (values.help === true) console.log(HELP)
  else if (positionals[0] === 'accept')
    await benchAccept({ ...times, only: only ?? CONTESTANTS_USUAL, isProfiled: values.profile === true })
  else if (positionals[0] === 'page') await benchPage()
  else if (positionals[0] === 'memory') await benchMemoryOf(values)
  else if (positionals[0] === 'cold') await benchCold({ messages: readNumber('messages', values.messages, 1_000_000) })
  else if (positionals[0] === 'sizing') await benchSizing(readNumber('messages', values.messages, 3_000))
  else if (positionals[0] === 'lifecycle')
    await benchLifecycle({
      seconds,
      messages: readNumber('messages', values.messages, 20_000),
      rate: values.rate === undefined ? null : readNumber('rate', values.rate, 0),
      isMx: values.mx === true,
    })
  else if (positionals[0] === 'search')
    await benchSearch({ messages: readNumber('messages', values.messages, 1_000_000), requests: SEARCHES })
  else if (positionals[0] === 'delivery')
    await benchDelivery({
      seconds,
      rate: readNumber('rate', values.rate, 200),
      dead: readNumber('dead', values.dead, 100),
      each: readNumber('messages', values.messages, 1000),
    })
  else if (positionals[0] === 'scale') await benchScale(seconds, warmUpSeconds)
  else if (positionals[0] === 'primaries')
    await benchPrimaries({ ...times, rate: readNumber('rate', values.rate, 560), isHeld: values.held === true })
  else if (positionals[0] === 'webhooks')
    await benchWebhooks({
      seconds,
      posts: readNumber('messages', values.messages, 20_000),
      only: only ?? ['all', 'one', 'beside'],
    })
  else if (positionals[0] === 'feed')
    await benchFeed({ seconds, events: readNumber('messages', values.messages, 10_000) })
  else if (positionals[0] === 'reports') await benchReports(readNumber('messages', values.messages, 5_000))
  else if (positionals[0] === 'judge') await benchJudge(readNumber('messages', values.messages, 5_000))
  else if (positionals[0] === 'content')
    await benchContent({
      messages: readNumber('messages', values.messages, 1_000),
      bytes: readNumber('kib', values.kib, 200) * 1024,
    })
  else if (positionals[0] === 'submission')
    await benchSubmission({ rounds, each: readNumber('messages', values.messages, 300) })
  else if (positionals[0] === 'inbound')
    await benchInbound({
      rounds,
      each: readNumber('messages', values.messages, 200),
      only: only ?? ['rate', 'bytes', 'large'],
    })
  else if (positionals[0] === 'doors')
    await benchDoors({ rounds, messages: readNumber('messages', values.messages, 20_000), ...(only && { only }) })
  else if (positionals[0] === 'broadcast')
    await benchBroadcast({ rounds, recipients: readNumber('messages', values.messages, 50_000) })
  else if (positionals[0] === 'erasure') {
    const messages = readNumber('messages', values.messages, 100_000)
    await benchErasure({ messages, received: Math.ceil(messages / 10) })
  } else if (positionals[0] === 'restart')
    await benchRestart({ rounds, messages: readNumber('messages', values.messages, 100_000) })
  else if (positionals[0] === 'start') await benchStart(rounds)
  else throw new Error(HELP)
}

/** What a message takes: in Redis, sealed, or of the persons whom mail was sent to. */
async function benchMemoryOf(values: { messages?: string; sealed?: boolean; persons?: string }): Promise<void> {
  if (values.sealed === true) await benchSealed(readNumber('messages', values.messages, 100_000))
  else if (values.persons !== undefined) await benchPersons(readNumber('persons', values.persons, 0))
  else await benchMemory(readNumber('messages', values.messages, 100_000))
}

function readNumber(name: string, text: string | undefined, fallback: number): number {
  const value = text === undefined ? fallback : Number(text)
  if (!Number.isInteger(value) || value < 1) throw new Error(`--${name} takes a whole number above 0 (is ${text})`)
  return value
}

main().then(
  () => process.exit(0),
  (error: Error) => {
    console.error(error.message)
    process.exit(1)
  },
)
