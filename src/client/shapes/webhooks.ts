/** webhooks - types of the contract, generated from schemas/ by test/contract.ts with --write; do not edit */

export interface Webhook {
  /** Id of the webhook */
  webhookId: string
  /** URL that receives the events */
  url: string
  /** Names of events, or the events themselves */
  events: (
    | 'delivered'
    | 'bounced'
    | 'deferred'
    | 'spam_complaint'
    | 'unsubscribed'
    | 'cap_warning'
    | 'cap_reached'
    | 'inbound')[]
  /** Id of the stream */
  streamId: string | null
  /** Label of the kind of mail */
  tag: string | null
  /** Your own keys and values */
  metadata: Record<string, string> | null
  /** Whether it is in use */
  enabled: boolean
  /** Whether `inbound` events carry the content; `raw`, for the format `postmark`, adds the source as `RawEmail` */
  inboundContent: 'full' | 'reference' | 'raw'
  /** Whose shape the bodies have: ours, or that of the webhooks of another provider */
  format: 'sendwright' | 'resend' | 'postmark'
  /** When it was created */
  createdAt: string
  /** Secrets that sign the deliveries */
  secrets: {
    /** Id of the secret */
    secretId: string
    /** When it was created */
    createdAt: string
  }[]
}

export interface WebhookMade {
  /** Id of the webhook */
  webhookId: string
  /** URL that receives the events */
  url: string
  /** Names of events, or the events themselves */
  events: (
    | 'delivered'
    | 'bounced'
    | 'deferred'
    | 'spam_complaint'
    | 'unsubscribed'
    | 'cap_warning'
    | 'cap_reached'
    | 'inbound')[]
  /** Id of the stream */
  streamId: string | null
  /** Label of the kind of mail */
  tag: string | null
  /** Your own keys and values */
  metadata: Record<string, string> | null
  /** Whether it is in use */
  enabled: boolean
  /** Whether `inbound` events carry the content; `raw`, for the format `postmark`, adds the source as `RawEmail` */
  inboundContent: 'full' | 'reference' | 'raw'
  /** Whose shape the bodies have: ours, or that of the webhooks of another provider */
  format: 'sendwright' | 'resend' | 'postmark'
  /** When it was created */
  createdAt: string
  /** Secrets that sign the deliveries */
  secrets: {
    /** Id of the secret */
    secretId: string
    /** When it was created */
    createdAt: string
  }[]
  /** Secret that signs the deliveries */
  secret: string
}

export interface WebhookBody {
  /** an https URI without fragment; user info with the format postmark only */
  url: string
  /** Names of events, or the events themselves */
  events?: readonly (
    | 'delivered'
    | 'bounced'
    | 'deferred'
    | 'spam_complaint'
    | 'unsubscribed'
    | 'cap_warning'
    | 'cap_reached'
    | 'inbound')[]
  /** Default: null */
  streamId?: string | null
  /** text without control characters. Default: null */
  tag?: string | null
  /** Default: null */
  metadata?: Record<string, string> | null
  /** Default: "full" */
  inboundContent?: 'full' | 'reference' | 'raw'
  /** Default: "sendwright" */
  format?: 'sendwright' | 'resend' | 'postmark'
}

export interface WebhookList {
  /** Webhooks of the server */
  webhooks: Webhook[]
  /** Value of `after` for the next page; null on the last page */
  next: string | null
}

export interface WebhookSecret {
  /** Id of the secret */
  secretId: string
  /** When it was created */
  createdAt: string
  /** Secret that signs the deliveries */
  secret: string
}

export interface Delivery {
  /** Id of the webhook delivery */
  deliveryId: string
  /** Name of the event */
  event:
    | 'delivered'
    | 'bounced'
    | 'deferred'
    | 'spam_complaint'
    | 'unsubscribed'
    | 'cap_warning'
    | 'cap_reached'
    | 'inbound'
  /** Id of the message */
  messageId: string | null
  /** Id of the received message */
  inboundMessageId: string | null
  /** Status */
  status: 'pending' | 'delivered' | 'dead'
  /** Number of attempts so far */
  attempts: number
  /** When the next attempt is due; null if none is planned */
  nextAttemptAt: string | null
  /** HTTP status of the last attempt; null without a response */
  lastStatusCode: number | null
  /** Error of the last attempt; null if it succeeded */
  lastError: string | null
  /** Response of the receiver to the last attempt */
  lastResponse: string | null
  /** When it was delivered; null until then */
  deliveredAt: string | null
  /** When it was created */
  createdAt: string
}

export interface DeliveryQuery {
  /** Status */
  status?: 'pending' | 'delivered' | 'dead'
  /** Name of the event */
  event?:
    | 'delivered'
    | 'bounced'
    | 'deferred'
    | 'spam_complaint'
    | 'unsubscribed'
    | 'cap_warning'
    | 'cap_reached'
    | 'inbound'
  /** Default: 100 */
  limit?: number
  /** Value of `next` of the previous page */
  after?: string
}

export interface DeliveryList {
  /** Webhook deliveries, newest first */
  deliveries: Delivery[]
  /** Value of `after` for the next page; null on the last page */
  next: string | null
}

export interface DeadReplay {
  /** Only entries created at this time or later */
  createdFrom: string
  /** Default: null */
  createdTo?: string | null
  /** Status */
  status: 'dead'
}

export interface Replayed {
  /** Number of deliveries that were queued */
  queued: number
}
