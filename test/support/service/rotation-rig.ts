/**
 * rotation-rig - a rotation of the secret of a running service while mail is sent and read, and all that has to hold
 * after it. The service has its secret in a file (`secret-folder.ts`), and content in a store.
 */
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Redis } from 'ioredis'
import type { Test } from 'tap'
import { CONF_KEY } from '../../../cluster/keyspace.ts'
import { openRing, type RingKeys } from '../../../src/state/ring/ring.ts'
import { webhookSecretOwner } from '../../../src/state/ring/sealed-values.ts'
import { until } from '../machine/until.ts'
import { SealedSeeker } from '../store/seek-sealed.ts'
import type { TestService } from './service.ts'

const WAIT_MS = 90_000
/** More than a body that stays in Redis. */
const LARGE_BYTES = 45_000
/** Messages before a rotation. */
const BEFORE = 30

type Checks = Pick<Test, 'ok' | 'equal' | 'same' | 'match'>

export interface RotationRig {
  /** Sends one message; returns its id. */
  send(): Promise<string>
  /** The secret in the file. */
  secret(): string
  /** The keys that seal; null if this secret does not open them. */
  sealingOf(ring: string | null, secret: string): RingKeys['sealing'] | null
  /** The ring as the store has it. */
  ring(): Promise<string | null>
  /**
   * Rotates while messages are sent and read, and `during` runs, over and over. Then the rotation has ended, nothing
   * opens with a former key, and each message has its content.
   */
  rotate(t: Checks, during?: (phase: string) => Promise<void>): Promise<void>
}

/** In: every Redis of the store, and that of shard 0. */
export function makeRotationRig(
  service: TestService,
  { redises, common }: { readonly redises: () => readonly Redis[]; readonly common: () => Promise<Redis> },
): RotationRig {
  const { testServer, liveServer, operatorToken } = service.firstRun
  const { token } = testServer
  const texts = new Map<string, string>()
  const secret = () => readFileSync(join(service.dataDir, 'secret-key'), 'utf8').trim()
  const ring = async () => (await common()).hget(CONF_KEY, 'ring')
  const sealingOf: RotationRig['sealingOf'] = (text, with_) => openRing(text ?? '', with_)?.sealing ?? null
  const shown = async () => (await service.operate('GET /v1/operator/secret', { token: operatorToken })).json

  async function send(): Promise<string> {
    const text = randomBytes(texts.size % 3 === 0 ? LARGE_BYTES : 200).toString('hex')
    const body = { from: 'hello@simulator.test', to: ['delivered@simulator.test'], subject: 'A message', text }
    // A store that moves or restarts answers 503 for a moment.
    const sent = await until(async () => {
      const answer = await service.call('POST /v1/email', { token, body })
      return answer.status === 503 ? null : answer
    }, WAIT_MS)
    if (sent.status !== 200) throw new Error(sent.text)
    texts.set(sent.json.messageId, text)
    return sent.json.messageId
  }

  async function textOf(id: string): Promise<string> {
    const read = await until(async () => {
      const answer = await service.call(`GET /v1/messages/${id}`, { token })
      return answer.status === 503 ? null : answer
    }, WAIT_MS)
    if (read.status !== 200) throw new Error(read.text)
    return read.json.text
  }

  return {
    send,
    secret,
    ring,
    sealingOf,
    async rotate(t, during = async () => undefined) {
      while (texts.size < BEFORE) await send()
      const former = sealingOf(await ring(), secret()) ?? []
      t.ok(former.length > 0, 'the ring opens with the secret')
      const ordered = await service.operate('POST /v1/operator/secret/rotate', { token: operatorToken, body: {} })
      t.equal(ordered.status, 202, ordered.text)
      let rounds = 0
      for (let phase = 'preparing'; phase !== 'done'; rounds += 1) {
        const id = await send()
        if ((await textOf(id)) !== texts.get(id)) t.equal(id, '', 'a message sent meanwhile has its content')
        await during(phase)
        const found = await until(async () => (await shown().catch(() => null))?.rotation ?? null, WAIT_MS)
        phase = found.phase
      }
      t.ok(rounds > 3, `${rounds} rounds meanwhile`)
      t.match((await shown()).rotation, { unreadable: 0, progress: 1 })
      const owners = [testServer, liveServer].map(({ serverId }) => webhookSecretOwner(serverId))
      const seeker = new SealedSeeker(former, owners)
      for (const redis of redises()) t.same(await seeker.inRedis(redis), [], 'nothing opens with a former key')
      t.equal(sealingOf(await ring(), secret())?.length, 1, 'one generation is left')
      let wrong = 0
      for (const [id, text] of texts) if ((await textOf(id)) !== text) wrong += 1
      t.equal(wrong, 0, `${texts.size} messages have their content`)
    },
  }
}
