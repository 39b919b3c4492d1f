/**
 * behaviours - the tables of all that a worker runs: entities, commands, timers. Lanes get their performers in main.
 */

import type { Behaviours } from '../../cluster/behaviour.ts'
import { accept } from './accept.ts'
import { accountEntity } from './account.ts'
import { approveAccount, closeAccount, pauseAccount, resumeAccount } from './account-status.ts'
import { addDomain } from './add-domain.ts'
import { addSuppressions } from './add-suppressions.ts'
import { archiveStream } from './archive-stream.ts'
import { CHECK_TIMER } from './check-schedule.ts'
import { createAccount } from './create-account.ts'
import { createServer } from './create-server.ts'
import { createStream } from './create-stream.ts'
import { createToken } from './create-token.ts'
import { domainEntity } from './domain.ts'
import { checkTimer } from './domain-check.ts'
import { dropItem } from './drop-item.ts'
import { RELEASE_TIMER, release } from './held.ts'
import { liftSuppression } from './lift-suppression.ts'
import { operateStream } from './operate-stream.ts'
import { orderQueue } from './order-queue.ts'
import { patchAccount } from './patch-account.ts'
import { patchServer } from './patch-server.ts'
import { patchStream } from './patch-stream.ts'
import { PEOPLE_TIMER, people } from './people.ts'
import { recordCheck } from './record-check.ts'
import { recordReport } from './record-report.ts'
import { removeDomain } from './remove-domain.ts'
import { removeServer } from './remove-server.ts'
import { RETIRE_TIMER, retire } from './retire-server.ts'
import { retryLane } from './retry-lane.ts'
import { revokeToken } from './revoke-token.ts'
import { rotateDkim } from './rotate-dkim.ts'
import { serverEntity } from './server.ts'
import { streamEntity } from './stream.ts'
import { SWEEP_TIMER, sweep } from './sweep.ts'
import { WEBHOOK_BEHAVIOURS } from './webhook-behaviours.ts'

export const BEHAVIOURS: Omit<Behaviours, 'lanes'> = {
  entities: [accountEntity, serverEntity, streamEntity, domainEntity, ...WEBHOOK_BEHAVIOURS.entities],
  commands: [
    accept,
    createAccount,
    patchAccount,
    addDomain,
    recordCheck,
    recordReport,
    addSuppressions,
    liftSuppression,
    removeDomain,
    rotateDkim,
    createToken,
    revokeToken,
    approveAccount,
    pauseAccount,
    resumeAccount,
    closeAccount,
    createServer,
    patchServer,
    removeServer,
    createStream,
    patchStream,
    archiveStream,
    operateStream,
    orderQueue,
    retryLane,
    dropItem,
    ...WEBHOOK_BEHAVIOURS.commands,
  ],
  timers: {
    ...WEBHOOK_BEHAVIOURS.timers,
    [SWEEP_TIMER]: sweep,
    [PEOPLE_TIMER]: people,
    [RELEASE_TIMER]: release,
    [RETIRE_TIMER]: retire,
    [CHECK_TIMER]: checkTimer,
  },
}
