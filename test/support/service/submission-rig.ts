/** submission-rig - a submission listener over real sockets, with handlers that record their input. */

import type { Test } from 'tap'
import { makeCertificate } from '../../../src/process/certificate.ts'
import { HeldBytes } from '../../../src/process/held-bytes.ts'
import { FailedLogins } from '../../../src/reception/submission/failed-logins.ts'
import {
  type SubmissionHandlers,
  type SubmissionLimits,
  type SubmissionOptions,
  startSubmissionListener,
} from '../../../src/reception/submission/listener.ts'
import type { Login } from '../../../src/reception/submission/login.ts'
import { UNKNOWN_KEY } from '../../../src/reception/submission/replies.ts'
import type { SubmittedMail } from '../../../src/reception/submission/submit.ts'
import type { SmtpDialog } from '../peers/smtp-dialog.ts'
import { openSubmission } from '../peers/submission.ts'

const TLS = makeCertificate('smtp.service.example', Date.now())
/** The password that is taken. */
export const RIG_KEY = 'the right key'

export interface SubmissionRig {
  readonly port: number
  readonly mails: SubmittedMail[]
  readonly told: string[]
  readonly faults: string[]
  open(): Promise<SmtpDialog>
  close(): Promise<void>
}

/** Starts a listener that ends with its test. */
export async function startRig(
  t: Test,
  changes: Partial<SubmissionHandlers> = {},
  { limits = {}, ...options }: Partial<SubmissionOptions> & { limits?: Partial<SubmissionLimits> } = {},
): Promise<SubmissionRig> {
  const mails: SubmittedMail[] = []
  const told: string[] = []
  const faults: string[] = []
  const login = { streamId: null } as Login
  const listener = await startSubmissionListener({
    host: '127.0.0.1',
    port: 0,
    setting: 'SUBMISSION_PORT',
    name: 'smtp.service.example',
    certificate: { current: TLS, onRenewed: () => undefined },
    proxies: [],
    offersReports: false,
    isImplicitTls: false,
    failedLogins: new FailedLogins(() => performance.now()),
    held: new HeldBytes(),
    handlers: {
      logIn: async ({ password }) => (password === RIG_KEY ? login : UNKNOWN_KEY),
      begin: async () => null,
      async message(_login, mail) {
        mails.push({ ...mail, bytes: Buffer.from(mail.bytes) })
        return { code: 250, text: `2.0.0 accepted ${mails.length}` }
      },
      told: (what, answer) => void told.push(`${what} ${answer === 'cut' ? answer : answer.code}`),
      ...changes,
    },
    log: { error: (facts: object) => void faults.push(JSON.stringify(facts)), debug: () => undefined },
    ...options,
    limits: { failedLoginMs: 10, ...limits },
  })
  t.teardown(() => listener.close())
  const { port } = listener
  return {
    port,
    mails,
    told,
    faults,
    open: () => openSubmission(port, { password: RIG_KEY }),
    close: () => listener.close(),
  }
}
