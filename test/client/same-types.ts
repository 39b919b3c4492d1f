/**
 * same-types - the client's types are those of schemas/: each accepts exactly what the other does. The compiler
 * compares; a difference is a line here that does not compile.
 */
import t from 'tap'
import type * as Schema from '../../schemas/broadcast.ts'
import type { EmailAnswer, EmailBody } from '../../schemas/email.ts'
import type { Erasure } from '../../schemas/erasure.ts'
import type { Issue } from '../../schemas/error.ts'
import type { ReceivedMessage, ReceivedSearch, ReceivedSummary } from '../../schemas/inbound.ts'
import type { Message, MessageEvent, MessageSearch, MessageSummary, RecipientEntry } from '../../schemas/message.ts'
import type { Server } from '../../schemas/server.ts'
import type { SuppressionEntry, SuppressionsBody } from '../../schemas/suppression.ts'
import type { Delivery, DeliveryList, EventName, ReplayBody, Webhook, WebhookBody } from '../../schemas/webhook.ts'
import type * as Client from '../../src/client/sendwright.ts'

/** Whether each fits where the other is asked for. */
type Same<One, Two> = [One] extends [Two] ? ([Two] extends [One] ? true : false) : false

/** Lists that may be read-only, as callers give them. */
type Given<Value> = Value extends readonly (infer Item)[]
  ? readonly Given<Item>[]
  : Value extends object
    ? { [Name in keyof Value]: Given<Value[Name]> }
    : Value

/** A body as it was checked has its defaults: each of its fields is one that a caller may give. */
type Fills<Checked, Written> = Given<Checked> extends Written ? true : false

const answers: readonly true[] = [
  true satisfies Same<Client.EmailAnswer, EmailAnswer>,
  true satisfies Same<Client.Message, Message>,
  true satisfies Same<Client.MessageSummary, MessageSummary>,
  true satisfies Same<Client.MessageEvent, MessageEvent>,
  true satisfies Same<Client.RecipientEntry, RecipientEntry>,
  true satisfies Same<Given<Client.ReceivedMessage>, Given<ReceivedMessage>>,
  true satisfies Same<Client.ReceivedSummary, ReceivedSummary>,
  true satisfies Same<Client.Broadcast, Schema.Broadcast>,
  true satisfies Same<Client.BroadcastPreview, Schema.BroadcastPreview>,
  true satisfies Same<Client.Suppression, SuppressionEntry>,
  true satisfies Same<Client.Webhook, Webhook>,
  true satisfies Same<Client.Delivery, Delivery>,
  true satisfies Same<Client.DeliveryList, DeliveryList>,
  true satisfies Same<Client.Erasure, Erasure>,
  true satisfies Same<Client.Server, Server>,
  true satisfies Same<Client.Event['event'], EventName>,
  true satisfies Same<Client.Issue, Issue>,
]

const bodies: readonly true[] = [
  true satisfies Fills<EmailBody, Client.Email>,
  true satisfies Fills<MessageSearch, Client.MessageSearch>,
  true satisfies Fills<ReceivedSearch, Client.ReceivedSearch>,
  true satisfies Fills<Schema.BroadcastBody, Client.BroadcastBody>,
  true satisfies Fills<SuppressionsBody, Client.SuppressionsBody>,
  true satisfies Fills<WebhookBody, Client.WebhookBody>,
  true satisfies Fills<ReplayBody, Client.DeadReplay>,
]

t.test('client: its types are those of schemas/ [client.types]', async (t) => {
  t.ok(answers.every(Boolean) && bodies.every(Boolean))
  const isSame: false = false satisfies Same<Client.MessageSummary, Message>
  t.notOk(isSame, 'the comparison sees a missing field')
})
