/** judge-thread - the body of the thread that verifies signatures with the answers of the DNS that it is given. */

import { parentPort } from 'node:worker_threads'
import type { LookUp } from '../mail/authenticate/look-up.ts'
import { checkSignatures, type SignatureReport } from '../mail/authenticate/signatures.ts'
import type { ThreadMessage } from './thread-room.ts'

/** An answer of the DNS: records, or the code of the error. */
export type Answered =
  | { readonly name: string; readonly type: string; readonly records: unknown[] }
  | { readonly name: string; readonly type: string; readonly code: string }

export interface VerifyJob {
  readonly raw: Uint8Array
  readonly checkedAtMs: number
  readonly answers: readonly Answered[]
}

export interface Verification {
  /** Null where the mail's header passes the limits. With open questions it is not the last word. */
  readonly report: SignatureReport | null
  readonly open: readonly { readonly name: string; readonly type: string }[]
}

const port = parentPort!

port.on('message', (job: VerifyJob) => {
  verify(job).then(
    (done) => port.postMessage({ done } satisfies ThreadMessage<Verification>),
    // A mail that the verifier cannot take at all is judged like one that takes too long.
    () => port.postMessage({ failed: true } satisfies ThreadMessage<Verification>),
  )
})

async function verify({ raw, checkedAtMs, answers }: VerifyJob): Promise<Verification> {
  const open = new Map<string, { name: string; type: string }>()
  const lookUp: LookUp = async (name, type) => {
    const known = answers.find((one) => one.name === name && one.type === type)
    if (known !== undefined && 'records' in known) return known.records
    if (known === undefined) open.set(`${type} ${name}`, { name, type })
    const code = known?.code ?? 'ETIMEOUT'
    throw Object.assign(new Error(`${code} ${type} ${name}`), { code })
  }
  const bytes = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength)
  const report = await checkSignatures(bytes, { lookUp, nowMs: checkedAtMs })
  return { report, open: [...open.values()] }
}
