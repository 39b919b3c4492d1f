/**
 * email - POST /v1/email and POST /v1/email/batch
 *
 * A batch is one request, one decision and one commit: its messages are accepted together or not at all.
 *
 * Spec send.normal, batch.all, batch.answer
 */

import type { BatchBody, EmailBody } from '../../schemas/email.ts'
import type { Handler } from '../http/request.ts'
import { normaliseEmail } from '../sending/email-form.ts'
import { type SendDeps, sendAll } from '../sending/send.ts'

/** POST /v1/email */
export function makeSendEmail(deps: SendDeps): Handler {
  return function sendEmail(request) {
    const startedAtMs = performance.now()
    const messages = [normaliseEmail(request.body as EmailBody)]
    return sendAll(deps, { startedAtMs, request, messages, cmdId: deps.newCmdId(), answer: ([only]) => only })
  }
}

/** POST /v1/email/batch. Spec batch.all, batch.answer */
export function makeSendBatch(deps: SendDeps): Handler {
  return function sendBatch(request) {
    const startedAtMs = performance.now()
    const messages = (request.body as BatchBody).messages.map(normaliseEmail)
    const cmdId = deps.newCmdId()
    return sendAll(deps, { startedAtMs, request, messages, cmdId, answer: (accepted) => ({ messages: accepted }) })
  }
}
