/**
 * webhook-behaviours - the entities, commands and timers of webhooks, as the tables of a worker take them
 */

import type { Behaviours } from '../../cluster/behaviour.ts'
import { listenersEntity, webhookEntity } from '../state/webhook/webhook.ts'
import { replayDead } from './replay-dead.ts'
import { BACKLOG_TIMER } from './webhook/announce.ts'
import { trimBacklog } from './webhook/backlog.ts'
import { createWebhook } from './webhook/create.ts'
import { listen } from './webhook/listen.ts'
import { DROP_TIMER, drop, removeWebhook } from './webhook/remove.ts'
import { example, replay } from './webhook/replay.ts'
import { addSecret, removeSecret } from './webhook/secrets.ts'
import { WEBHOOK_SWEEP_TIMER, webhookSweep } from './webhook/sweep.ts'
import { OFF_TIMER, settleOff, switchWebhook } from './webhook/switch.ts'

export const WEBHOOK_BEHAVIOURS = {
  entities: [webhookEntity, listenersEntity],
  commands: [createWebhook, removeWebhook, switchWebhook, addSecret, removeSecret, replay, replayDead, example, listen],
  timers: {
    [BACKLOG_TIMER]: trimBacklog,
    [OFF_TIMER]: settleOff,
    [DROP_TIMER]: drop,
    [WEBHOOK_SWEEP_TIMER]: webhookSweep,
  },
} satisfies Omit<Behaviours, 'lanes'>
