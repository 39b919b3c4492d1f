/**
 * webhook-behaviours - the entities, commands and timers of webhooks, as the tables of a worker take them
 */

import type { Behaviours } from '../../cluster/behaviour.ts'
import { BACKLOG_TIMER } from './announce.ts'
import { createWebhook } from './create-webhook.ts'
import { listen } from './listen.ts'
import { DROP_TIMER, drop, removeWebhook } from './remove-webhook.ts'
import { example, replay } from './replay.ts'
import { replayDead } from './replay-dead.ts'
import { OFF_TIMER, settleOff, switchWebhook } from './switch-webhook.ts'
import { listenersEntity, webhookEntity } from './webhook.ts'
import { trimBacklog } from './webhook-backlog.ts'
import { addSecret, removeSecret } from './webhook-secret.ts'
import { WEBHOOK_SWEEP_TIMER, webhookSweep } from './webhook-sweep.ts'

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
