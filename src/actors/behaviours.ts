/**
 * behaviours - the tables of all that a worker runs: entities, commands, timers. Lanes get their performers in main.
 */

import type { Behaviours } from '../../cluster/behaviour.ts'
import { accountEntity } from '../state/account.ts'
import { domainEntity } from '../state/domain.ts'
import { serverEntity } from '../state/server.ts'
import { streamEntity } from '../state/stream.ts'
import { createAccount } from './account/create-account.ts'
import { PEOPLE_TIMER, people } from './account/people.ts'
import { createToken } from './account/token.ts'
import { approveAccount, closeAccount, pauseAccount, resumeAccount } from './account-status.ts'
import { archiveStream } from './archive-stream.ts'
import { addDomain } from './domain/add-domain.ts'
import { CHECK_TIMER } from './domain/check-schedule.ts'
import { checkTimer } from './domain/domain-check.ts'
import { removeDomain } from './domain/remove-domain.ts'
import { rotateDkim } from './domain/rotate-dkim.ts'
import { dropItem } from './drop-item.ts'
import { accept } from './message/accept.ts'
import { RELEASE_TIMER, release } from './message/held.ts'
import { orderQueue } from './message/operate-queue.ts'
import { recordReport } from './message/record-report.ts'
import { SWEEP_TIMER, sweep } from './message/sweep.ts'
import { patchAccount } from './patch-account.ts'
import { recordCheck } from './record-check.ts'
import { RETIRE_TIMER, retire } from './retire-server.ts'
import { retryLane } from './retry-lane.ts'
import { revokeToken } from './revoke-token.ts'
import { createServer } from './server/create-server.ts'
import { createStream } from './server/create-stream.ts'
import { operateStream } from './server/operate-stream.ts'
import { patchServer } from './server/patch-server.ts'
import { patchStream } from './server/patch-stream.ts'
import { removeServer } from './server/remove-server.ts'
import { addSuppressions } from './suppression/add-suppressions.ts'
import { liftSuppression } from './suppression/lift-suppression.ts'
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
