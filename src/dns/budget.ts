/**
 * budget - the look-ups that one received mail may cost: 60 queries, 10 seconds of waiting and 512 KB of answers,
 * whatever its senders publish.
 *
 * States: open; spent, when new queries fail (ETIMEOUT). An answer beyond the bytes is dropped and fails (EBADRESP).
 * Each query is sent once; time counts while at least one query is in flight, so that computing in between costs
 * nothing. If the mail has a total time, waiting ends with it.
 *
 * Spec inbound.authentication
 */

import type { DnsLookUp } from '../mail/authenticate/look-up.ts'
import { answerBytes, type DnsAnswer, type RecordType } from './answer.ts'
import type { Resolver } from './resolve.ts'

const QUESTIONS_MAX = 60
const WAIT_MS_MAX = 10_000
/** Heap of all answers of one mail; dozens of mails are judged at once. */
const ANSWER_BYTES_MAX = 512 * 1024
const TYPES: ReadonlySet<string> = new Set<RecordType>(['A', 'AAAA', 'CNAME', 'NS', 'PTR', 'MX', 'TXT'])

export interface BudgetOptions {
  /** Monotonic clock in milliseconds. */
  readonly nowMs: () => number
  readonly questionsMax?: number
  readonly waitMsMax?: number
  /** The mail's total time, and the part of it spent on other things than waiting. */
  readonly wholeMsMax?: number
  readonly spentMs?: () => number
}

/** The look-ups of one mail. */
export class DnsBudget {
  readonly #resolver: Resolver
  readonly #options: Required<BudgetOptions>
  readonly #answers = new Map<string, Promise<DnsAnswer<unknown>>>()
  #answerBytes = 0
  #waitedMs = 0
  #underWay = 0
  #sinceMs = 0

  constructor(resolver: Resolver, options: BudgetOptions) {
    this.#resolver = resolver
    this.#options = {
      questionsMax: QUESTIONS_MAX,
      waitMsMax: WAIT_MS_MAX,
      wholeMsMax: Number.POSITIVE_INFINITY,
      spentMs: () => 0,
      ...options,
    }
  }

  /** Questions that were asked. */
  get asked(): number {
    return this.#answers.size
  }

  /** Waited so far. */
  get waitedMs(): number {
    return this.#waitedMs + (this.#underWay > 0 ? this.#options.nowMs() - this.#sinceMs : 0)
  }

  /** Answers like `node:dns`: rejects with ENOTFOUND, ENODATA, or another code of the resolver. */
  readonly lookUp: DnsLookUp = async (name, type) => {
    const answer = await this.#answerTo(name, type)
    if (answer.status === 'ok') return [...answer.records]
    const code = answer.status === 'nxdomain' ? 'ENOTFOUND' : answer.status === 'nodata' ? 'ENODATA' : answer.code
    throw Object.assign(new Error(`${code} ${type} ${name}`), { code })
  }

  #answerTo(name: string, type: string): Promise<DnsAnswer<unknown>> {
    if (!TYPES.has(type)) return Promise.resolve({ status: 'nodata' })
    const question = `${type} ${name.toLowerCase()}`
    const known = this.#answers.get(question)
    if (known !== undefined) return known
    const { waitMsMax, wholeMsMax, spentMs } = this.#options
    const leftMs = Math.min(waitMsMax, wholeMsMax - spentMs()) - this.waitedMs
    if (this.#answers.size >= this.#options.questionsMax || leftMs <= 0)
      return Promise.resolve({ status: 'failure', code: 'ETIMEOUT' })
    const answer = this.#ask(name, { type: type as RecordType, leftMs })
    this.#answers.set(question, answer)
    return answer
  }

  async #ask(name: string, { type, leftMs }: { type: RecordType; leftMs: number }): Promise<DnsAnswer<unknown>> {
    if (this.#underWay === 0) this.#sinceMs = this.#options.nowMs()
    this.#underWay += 1
    const answer = await orLate(this.#resolver.look(type, name), leftMs)
    this.#underWay -= 1
    if (this.#underWay === 0) this.#waitedMs += this.#options.nowMs() - this.#sinceMs
    const bytes = answerBytes(answer)
    if (this.#answerBytes + bytes > ANSWER_BYTES_MAX) return { status: 'failure', code: 'EBADRESP' }
    this.#answerBytes += bytes
    return answer
  }
}

/** The answer, or ETIMEOUT once `leftMs` are over. */
function orLate(asked: Promise<DnsAnswer<unknown>>, leftMs: number): Promise<DnsAnswer<unknown>> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve({ status: 'failure', code: 'ETIMEOUT' }), leftMs)
    void asked.then((answer) => {
      clearTimeout(timer)
      resolve(answer)
    })
  })
}
