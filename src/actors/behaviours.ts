/**
 * behaviours - the tables of all that a worker runs: entities, commands, timers. Lanes get their performers in main.
 */

import type { Behaviours, CommandType } from '../../cluster/behaviour.ts'
import { accountEntity } from '../state/account.ts'
import { BROADCAST_FORGET_TIMER, broadcastEntity } from '../state/broadcast/broadcast.ts'
import { domainEntity } from '../state/domain.ts'
import { ERASE_TIMER, erasureEntity } from '../state/erasure.ts'
import { PEOPLE_TIMER } from '../state/log-retention.ts'
import { CONTENT_TIMER } from '../state/message/retention.ts'
import { serverEntity } from '../state/server.ts'
import { streamEntity } from '../state/stream.ts'
import { listenersEntity, webhookEntity } from '../state/webhook/webhook.ts'
import { approveAccount, closeAccount, patchAccount, pauseAccount, resumeAccount } from './account/change-account.ts'
import { createAccount } from './account/create-account.ts'
import { people } from './account/people.ts'
import { createToken, revokeToken } from './account/token.ts'
import { BROADCAST_BEGIN_TIMER, beginBroadcast } from './broadcast/begin-broadcast.ts'
import { createBroadcast } from './broadcast/create-broadcast.ts'
import { endBroadcast, forgetBroadcast } from './broadcast/end-broadcast.ts'
import { orderBroadcast } from './broadcast/order-broadcast.ts'
import { releaseBroadcast } from './broadcast/release-broadcast.ts'
import { BROADCAST_END_TIMER, BROADCAST_TIMER, BROADCAST_WAKE_TIMER, wakeBroadcasts } from './broadcast/running.ts'
import { countTry } from './dashboard/count-try.ts'
import { endDesk, makeDeskLink, openDesk, useDeskLink } from './dashboard/desk.ts'
import { beginExport, endExport } from './dashboard/export.ts'
import { changeFactors, takeStep } from './dashboard/factor.ts'
import { beginJoin, beginLeave, joinAccount } from './dashboard/join.ts'
import { endLinks, makeAccountLink, makeLink, useAccountLink, useUserLink } from './dashboard/link.ts'
import { changeMember, invite, sendInvitation, withdrawInvitation } from './dashboard/member.ts'
import { beginSession, endSession, markSession } from './dashboard/session.ts'
import { applyForCap, changeSettings, logged, noteAct } from './dashboard/settings.ts'
import { addUser, changeUser, forgetSessions, indexSession } from './dashboard/user.ts'
import { FORGET_USER_TIMER, forgetUser, lookAtUsers } from './dashboard/user-look.ts'
import { addDomain } from './domain/add-domain.ts'
import { CHECK_TIMER } from './domain/check-schedule.ts'
import { checkTimer, recordCheck } from './domain/domain-check.ts'
import { removeDomain } from './domain/remove-domain.ts'
import { rotateDkim } from './domain/rotate-dkim.ts'
import { useInTests } from './domain/use-in-tests.ts'
import { erase } from './erasure/erase.ts'
import { walkErasure } from './erasure/walk.ts'
import { RECEIVED_TIMER, receive } from './inbound/receive.ts'
import { sweepReceived } from './inbound/sweep-received.ts'
import { accept } from './message/accept.ts'
import { RELEASE_TIMER, release } from './message/held.ts'
import { dropItem, orderQueue, retryLane } from './message/operate-queue.ts'
import { recordReport } from './message/record-report.ts'
import { reveal, searchRecipients } from './message/reveal.ts'
import { orderScheduled } from './message/schedule.ts'
import { SWEEP_TIMER, sweep } from './message/sweep.ts'
import { settleClick, undoUnsubscribe, unsubscribe } from './message/unsubscribe.ts'
import { applyEgress } from './operator/egress.ts'
import { createOperatorKey, noteOperatorUse, revokeOperatorKey } from './operator/operator-key.ts'
import { reseal, resealWebhook } from './operator/reseal.ts'
import { rotateSecret } from './operator/rotate.ts'
import { countReport } from './report/count-report.ts'
import { CONTENT_OF_TIMER, forgetContent, forgetContentOf } from './retention/forget-content.ts'
import {
  setAccountRetention,
  setInstallationRetention,
  setServerRetention,
  setStreamRetention,
} from './retention/set-retention.ts'
import { resealSegment } from './sealed/reseal.ts'
import { createServer } from './server/create-server.ts'
import { createStream } from './server/create-stream.ts'
import { operateStream } from './server/operate-stream.ts'
import { patchServer } from './server/patch-server.ts'
import { archiveStream, patchStream } from './server/patch-stream.ts'
import { RETIRE_TIMER, removeServer, retire } from './server/remove-server.ts'
import { addSuppressions } from './suppression/add-suppressions.ts'
import { UNSUBSCRIBE_TIMER } from './suppression/click.ts'
import { liftSuppression } from './suppression/lift-suppression.ts'
import { BACKLOG_TIMER } from './webhook/announce.ts'
import { trimBacklog } from './webhook/backlog.ts'
import { createWebhook } from './webhook/create.ts'
import { forgetHeard, HEARD_TIMER, listen } from './webhook/listen.ts'
import { DROP_TIMER, drop, removeWebhook } from './webhook/remove.ts'
import { example, replay, replayDead } from './webhook/replay.ts'
import { addSecret, removeSecret } from './webhook/secrets.ts'
import { WEBHOOK_SWEEP_TIMER, webhookSweep } from './webhook/sweep.ts'
import { OFF_TIMER, settleOff, switchWebhook } from './webhook/switch.ts'

/** Orders of members of an account, logged with their author. */
const BY_MEMBERS: readonly CommandType[] = [
  orderBroadcast,
  addDomain,
  recordCheck,
  addSuppressions,
  orderScheduled,
  liftSuppression,
  removeDomain,
  rotateDkim,
  useInTests,
  createToken,
  revokeToken,
  createServer,
  patchServer,
  removeServer,
  createStream,
  patchStream,
  archiveStream,
  setAccountRetention,
  setServerRetention,
  setStreamRetention,
  createWebhook,
  removeWebhook,
  switchWebhook,
  addSecret,
  removeSecret,
  replay,
  replayDead,
  example,
  erase,
  changeMember,
  invite,
  sendInvitation,
  withdrawInvitation,
  changeSettings,
  applyForCap,
  applyEgress,
  rotateSecret,
  reseal,
  resealWebhook,
  resealSegment,
]

export const BEHAVIOURS: Omit<Behaviours, 'lanes'> = {
  entities: [
    broadcastEntity,
    accountEntity,
    serverEntity,
    streamEntity,
    domainEntity,
    webhookEntity,
    listenersEntity,
    erasureEntity,
  ],
  commands: [
    accept,
    createBroadcast,
    receive,
    createAccount,
    patchAccount,
    recordReport,
    countReport,
    unsubscribe,
    undoUnsubscribe,
    approveAccount,
    pauseAccount,
    resumeAccount,
    closeAccount,
    operateStream,
    createOperatorKey,
    revokeOperatorKey,
    noteOperatorUse,
    orderQueue,
    retryLane,
    dropItem,
    reveal,
    searchRecipients,
    listen,
    addUser,
    changeUser,
    indexSession,
    forgetSessions,
    beginJoin,
    beginLeave,
    lookAtUsers,
    joinAccount,
    takeStep,
    changeFactors,
    countTry,
    beginSession,
    endSession,
    markSession,
    makeLink,
    makeAccountLink,
    useUserLink,
    useAccountLink,
    endLinks,
    openDesk,
    endDesk,
    makeDeskLink,
    useDeskLink,
    noteAct,
    beginExport,
    endExport,
    setInstallationRetention,
    ...BY_MEMBERS.map(logged),
  ],
  timers: {
    [BROADCAST_TIMER]: releaseBroadcast,
    [BROADCAST_BEGIN_TIMER]: beginBroadcast,
    [BROADCAST_END_TIMER]: endBroadcast,
    [BROADCAST_FORGET_TIMER]: forgetBroadcast,
    [BROADCAST_WAKE_TIMER]: wakeBroadcasts,
    [ERASE_TIMER]: walkErasure,
    [BACKLOG_TIMER]: trimBacklog,
    [OFF_TIMER]: settleOff,
    [DROP_TIMER]: drop,
    [WEBHOOK_SWEEP_TIMER]: webhookSweep,
    [SWEEP_TIMER]: sweep,
    [CONTENT_TIMER]: forgetContent,
    [CONTENT_OF_TIMER]: forgetContentOf,
    [RECEIVED_TIMER]: sweepReceived,
    [PEOPLE_TIMER]: people,
    [RELEASE_TIMER]: release,
    [RETIRE_TIMER]: retire,
    [HEARD_TIMER]: forgetHeard,
    [CHECK_TIMER]: checkTimer,
    [UNSUBSCRIBE_TIMER]: settleClick,
    [FORGET_USER_TIMER]: forgetUser,
  },
}
