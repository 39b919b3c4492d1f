/**
 * submit - turns a submitted message into a send, and the decision into a reply
 *
 * Steps: header and control fields, the rest as far as the log shows it, the decision that the API has too. 250
 * follows the commit.
 *
 * Spec submission.durable, submission.header
 */

import { shardOf } from '../../../cluster/id.ts'
import { SIMULATOR_DOMAIN } from '../../mail/simulator.ts'
import { type SendDeps, sendAll } from '../../sending/send.ts'
import { type EnvelopeReports, makeIdempotency, normaliseSubmission } from '../../sending/smtp-form.ts'
import { readSubmittedHeader } from '../../sending/submitted-header.ts'
import { sendingFields } from '../../state/domain.ts'
import { sendingKey } from '../../state/keys.ts'
import type { SmtpAnswer } from '../smtp-answer.ts'
import type { BodyReader } from './body-reader.ts'
import type { Login } from './login.ts'
import { answerRefusal, answerSubmission, FULL, invalidMessage, LOOP, UNAVAILABLE } from './replies.ts'

export interface SubmitDeps extends SendDeps {
  readonly newCmdId: () => string
  readonly reader: BodyReader
}

/** A message with its envelope. */
export interface SubmittedMail {
  readonly bytes: Buffer
  /** Each once, of the grammar. */
  readonly recipients: readonly string[]
  /** Parameters about reports; null if DSN is not offered. */
  readonly reports: EnvelopeReports | null
}

/** The refusal if the store has no room for new mail; otherwise null. Spec send.room */
export function refuseFull({ roomLack, metrics }: Pick<SubmitDeps, 'roomLack' | 'metrics'>): SmtpAnswer | null {
  const lack = roomLack()
  if (lack === null) return null
  metrics.notTaken(lack)
  return FULL
}

/**
 * The refusal of a Sender whose domain is not the account's: mail clients show it beside From. The decision only
 * checks From, so the domain of Sender is looked up here.
 */
async function refuseForeignSender(
  { read }: Pick<SubmitDeps, 'read'>,
  { accountId, mode }: Login['key'],
  domain: string | null,
): Promise<SmtpAnswer | null> {
  const shard = shardOf(accountId)
  if (domain === null || shard === null || (mode === 'test' && domain === SIMULATOR_DOMAIN)) return null
  const fields = sendingFields(domain, mode === 'test')
  const seen = await read(shard, [{ read: 'fields', key: sendingKey(shard, accountId), fields }])
  if (seen === null) return UNAVAILABLE
  if (seen[0].some((row) => row !== null)) return null
  return answerRefusal({ code: 'domain_not_verified', extra: { domain, mode } })
}

/** Sends a message; `cut` if the outcome is unknown. */
export async function submit(
  deps: SubmitDeps,
  { key, streamId }: Login,
  { bytes, recipients, reports }: SubmittedMail,
): Promise<SmtpAnswer | 'cut'> {
  const startedAtMs = performance.now()
  const full = refuseFull(deps)
  if (full !== null) return full
  const read = readSubmittedHeader(bytes)
  if (!read.ok) return read.problem === 'loop' ? LOOP : invalidMessage(read.text)
  const { header } = read
  const foreign = await refuseForeignSender(deps, key, header.senderDomain)
  if (foreign !== null) return foreign
  const body = await deps.reader.read({ edited: header.edited, isKeyed: header.control.idempotencyKey !== null })
  if (body === 'busy') return UNAVAILABLE
  const submission = { header, body, recipients, streamId, reports }
  const message = normaliseSubmission(submission)
  const result = await sendAll(deps, {
    startedAtMs,
    key,
    source: 's',
    cmdId: deps.newCmdId(),
    messages: [message],
    batch: false,
    idempotency: makeIdempotency(submission, message),
  })
  return answerSubmission(result)
}
