/** webhooks - calls about webhooks and their deliveries, and the check of a signature */
import type { Exchange } from './exchange.ts'
import { joinPath } from './mail.ts'
import type { CallOptions } from './options.ts'
import { iterate } from './pages.ts'
import type { Event } from './shapes/events.ts'
import type { Page } from './shapes/resources.ts'
import type {
  DeadReplay,
  Delivery,
  DeliveryList,
  DeliveryQuery,
  Replayed,
  Webhook,
  WebhookBody,
  WebhookList,
  WebhookMade,
  WebhookSecret,
} from './shapes/webhooks.ts'
import { verifyWebhook } from './signature.ts'

export interface Webhooks {
  /** Creates a webhook. The answer has its signing secret, which no other answer has. */
  create(webhook: WebhookBody, options?: CallOptions): Promise<WebhookMade>
  list(query?: Page, options?: CallOptions): Promise<WebhookList>
  iterate(query?: Page, options?: CallOptions): AsyncGenerator<Webhook, void, undefined>
  read(webhookId: string, options?: CallOptions): Promise<Webhook>
  delete(webhookId: string, options?: CallOptions): Promise<void>
  enable(webhookId: string, options?: CallOptions): Promise<Webhook>
  disable(webhookId: string, options?: CallOptions): Promise<Webhook>
  addSecret(webhookId: string, options?: CallOptions): Promise<WebhookSecret>
  deleteSecret(webhookId: string, secretId: string, options?: CallOptions): Promise<void>
  deliveries(webhookId: string, query?: DeliveryQuery, options?: CallOptions): Promise<DeliveryList>
  /** Attempts a delivery again. */
  replay(webhookId: string, deliveryId: string, options?: CallOptions): Promise<Delivery>
  /** Attempts the dead deliveries of a period again. */
  replayDead(webhookId: string, period: DeadReplay, options?: CallOptions): Promise<Replayed>
  /** Has an example of an event posted. */
  test(webhookId: string, event: Event['event'], options?: CallOptions): Promise<Delivery>
  /** Checks the signature of a request, and reads its event. It needs no call and no key: see `verifyWebhook`. */
  verify: typeof verifyWebhook
}

/**
 * Calls about webhooks.
 * @internal
 */
export function makeWebhooks({ ask }: Exchange): Webhooks {
  const path = '/v1/webhooks'
  const list: Webhooks['list'] = (query, options) => ask({ method: 'GET', path, query, options })
  return {
    create: (body, options) => ask({ method: 'POST', path, body, options }),
    list,
    iterate: (query, options) =>
      iterate(
        (after) => list({ ...query, ...after }, options),
        ({ webhooks }) => webhooks,
      ),
    read: (id, options) => ask({ method: 'GET', path: joinPath(path, id), options }),
    delete: (id, options) => ask({ method: 'DELETE', path: joinPath(path, id), options }),
    enable: (id, options) => ask({ method: 'POST', path: joinPath(path, id, 'enable'), options }),
    disable: (id, options) => ask({ method: 'POST', path: joinPath(path, id, 'disable'), options }),
    addSecret: (id, options) => ask({ method: 'POST', path: joinPath(path, id, 'secrets'), options }),
    deleteSecret: (id, secretId, options) =>
      ask({ method: 'DELETE', path: joinPath(path, id, 'secrets', secretId), options }),
    deliveries: (id, query, options) => ask({ method: 'GET', path: joinPath(path, id, 'deliveries'), query, options }),
    replay: (id, deliveryId, options) =>
      ask({ method: 'POST', path: joinPath(path, id, 'deliveries', deliveryId, 'replay'), options }),
    replayDead: (id, body, options) => ask({ method: 'POST', path: joinPath(path, id, 'replay'), body, options }),
    test: (id, event, options) => ask({ method: 'POST', path: joinPath(path, id, 'test'), body: { event }, options }),
    verify: verifyWebhook,
  }
}
