/** simulator - the outcomes by local part. */

import t from 'tap'
import { simulatedOutcome } from '../../src/mail/simulator.ts'

type Row = [
  address: string,
  attempt: number,
  result: string,
  code: number,
  classification: string | null,
  hard: boolean,
  expired: boolean,
]
const ROWS: Row[] = [
  ['ann@example.com', 1, 'delivered', 250, null, false, false],
  ['bounce@example.com', 1, 'delivered', 250, null, false, false],
  ['bounce@sub.simulator.test', 1, 'delivered', 250, null, false, false],
  ['delivered@simulator.test', 1, 'delivered', 250, null, false, false],
  ['whoever@simulator.test', 1, 'delivered', 250, null, false, false],
  ['bounce@simulator.test', 1, 'bounced', 550, 'InvalidRecipient', true, false],
  ['hardbounce+7@simulator.test', 1, 'bounced', 550, 'InvalidRecipient', true, false],
  ['Bounce+a+b@Simulator.TEST', 1, 'bounced', 550, 'InvalidRecipient', true, false],
  ['softbounce@simulator.test', 1, 'bounced', 552, 'QuotaIssues', false, false],
  ['blocked@simulator.test', 1, 'bounced', 550, 'SpamBlock', false, false],
  ['deferred@simulator.test', 1, 'deferred', 451, 'TransientFailure', false, false],
  ['deferred@simulator.test', 2, 'deferred', 451, 'TransientFailure', false, false],
  ['deferred@simulator.test', 3, 'delivered', 250, null, false, false],
  ['expired@simulator.test', 2, 'deferred', 451, 'TransientFailure', false, false],
  ['expired@simulator.test', 3, 'bounced', 451, 'TransientFailure', false, true],
  ['complaint@simulator.test', 1, 'delivered', 250, null, false, false],
  ['unsubscribe@simulator.test', 1, 'delivered', 250, null, false, false],
  ['code-550-5.7.26@simulator.test', 1, 'bounced', 550, 'AuthenticationFailed', false, false],
  ['code-550-5.1.1+x@simulator.test', 1, 'bounced', 550, 'InvalidRecipient', true, false],
  ['code-552-5.2.2@simulator.test', 1, 'bounced', 552, 'QuotaIssues', false, false],
  ['code-450-4.2.0@simulator.test', 2, 'deferred', 450, 'TransientFailure', false, false],
  ['code-450-4.2.0@simulator.test', 3, 'delivered', 250, null, false, false],
  ['code-250-2.0.0@simulator.test', 1, 'delivered', 250, null, false, false],
]
for (const [address, attempt, result, code, classification, hard, expired] of ROWS) {
  t.test(`simulator: ${address}, attempt ${attempt}`, async (t) => {
    t.match(simulatedOutcome({ address, attempt }), { result, code, classification, hard, expired })
  })
}
t.test('simulator: the reply to a delivery', async (t) => {
  t.equal(simulatedOutcome({ address: 'a@b.test', attempt: 1 }).response, '250 2.0.0 OK (test)')
})
