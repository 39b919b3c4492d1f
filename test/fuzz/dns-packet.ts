/** Replies of the DNS with bytes cut, changed and doubled, and mere noise: each is read without a throw, in bounds. */
import t from 'tap'
import { answerBytes } from '../../src/dns/answer.ts'
import { encodeQuestion, readReply } from '../../src/dns/packet.ts'
import { encodeAnswer, type ZoneRecord } from '../support/peers/dns-answer.ts'

const SEED = Number(process.env.SEED ?? 7)
const REPLIES = Number(process.env.REPLIES ?? 20_000)
const CODES = { A: 1, NS: 2, CNAME: 5, PTR: 12, MX: 15, TXT: 16, AAAA: 28, TLSA: 52 }
const NAME = 'a+b.c.test'
const RECORDS: readonly ZoneRecord[] = [
  { type: 'A', address: '192.0.2.1' },
  { type: 'AAAA', address: '2001:db8::1' },
  { type: 'CNAME', domain: 'b.test' },
  { type: 'PTR', domain: 'b.test' },
  { type: 'NS', ns: 'b.test' },
  { type: 'MX', exchange: 'mx.b.test', priority: 10 },
  { type: 'TXT', data: ['v=spf1 ', '-all'] },
]
/** Bytes that mean something: lengths, pointers to the header, the question and behind it. */
const WORDS = [0x00, 0x01, 0x3f, 0x40, 0xc0, 0xff, 0x0c, 0x80]

let state = SEED
function draw(below: number): number {
  state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
  return Math.floor((state / 2 ** 32) * below)
}

function mutate(bytes: Buffer): Buffer {
  let out = bytes
  for (let left = draw(6); left > 0; left -= 1) {
    const at = draw(out.length + 1)
    const word = draw(2) === 0 ? (WORDS[draw(WORDS.length)] as number) : draw(256)
    const set = Buffer.from(out)
    if (at < set.length) set[at] = word
    out = [
      set,
      set,
      out.subarray(0, at),
      Buffer.concat([out.subarray(0, at), Buffer.of(word), out.subarray(at)]),
      Buffer.concat([out, out.subarray(at)]).subarray(0, 65_535),
    ][draw(5)] as Buffer
  }
  return out
}

t.test(`fuzz: ${REPLIES} replies (seed ${SEED})`, async (t) => {
  const statuses = new Map<string, number>()
  let most = 0
  for (let n = 0; n < REPLIES; n += 1) {
    const type = (RECORDS[draw(RECORDS.length)] as ZoneRecord).type
    const question = encodeQuestion({ id: 7, type, name: NAME }) as Buffer
    const answers = Array.from({ length: draw(5) }, () => {
      const record = RECORDS[draw(RECORDS.length)] as ZoneRecord
      return { name: draw(3) === 0 ? 'b.test' : NAME, record }
    })
    const whole = encodeAnswer({
      id: 7,
      question: { name: NAME, type: CODES[type] },
      code: 0,
      isTruncated: false,
      answers,
    })
    // Behind the question, mostly: a reply to another one is not read at all.
    const kept = draw(10) === 0 ? 0 : question.length
    const reply = Buffer.concat([whole.subarray(0, kept), mutate(whole.subarray(kept))])
    const read = readReply(reply, question, type)
    const status = typeof read === 'object' && read !== null ? read.status : String(read)
    statuses.set(status, (statuses.get(status) ?? 0) + 1)
    if (typeof read === 'object' && read !== null) most = Math.max(most, answerBytes(read))
  }
  for (const status of ['ok', 'nodata', 'failure', 'null'])
    t.ok((statuses.get(status) ?? 0) > REPLIES / 1000, `${status}: ${statuses.get(status)}`)
  t.ok(most < 512 * 4096, `at most ${most} bytes`)
})

t.test('fuzz: a reply of 64 KB that is all pointers takes little time', async (t) => {
  const question = encodeQuestion({ id: 7, type: 'PTR', name: NAME }) as Buffer
  // Each label is one byte behind a pointer chain as long as pointers may chain: always backwards.
  const chain = Buffer.alloc(16_000)
  for (let at = 0; at < chain.length; at += 2) chain.writeUInt16BE(0xc000 | Math.max(12, question.length + at - 2), at)
  const record = (to: number) => Buffer.from([0xc0 | (to >> 8), to & 0xff, 0, 12, 0, 1, 0, 0, 0, 60, 0, 0])
  const records = Array.from({ length: 512 }, () => record(question.length + chain.length - 2))
  const reply = Buffer.concat([question, chain, ...records])
  reply.writeUInt16BE(0x8180, 2)
  reply.writeUInt16BE(512, 6)
  const before = performance.now()
  readReply(reply, question, 'PTR')
  t.ok(performance.now() - before < 50, `${performance.now() - before} ms`)
})
