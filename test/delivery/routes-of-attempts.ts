/** Each attempt shows its route: in the message, and to the operator. */

import t from 'tap'
import type { Message } from '../../schemas/message.ts'
import { makeSelfSigned } from '../support/peers/self-signed.ts'
import { startDelivery } from '../support/service/delivery.ts'

const selfSigned = makeSelfSigned()
const delivery = await startDelivery()
t.teardown(() => delivery.stop())
const { destination, send, messageWhen, operate } = delivery

const hasEnded = ({ status }: Message) => status !== 'accepted'

t.test('delivery: an attempt over TLS shows every step [message.route]', { skip: !selfSigned }, async (t) => {
  await destination('tls.test', { capabilities: ['STARTTLS'], tls: selfSigned! })
  const id = await send(['ada@tls.test'])
  const { events } = await messageWhen(id, hasEnded)
  const route = events[0]?.route
  t.match(route, {
    address: /^127\./,
    sourceAddress: /^127\./,
    tlsVersion: 'TLSv1.3',
    cipher: /^TLS_/,
    certificateVerified: false,
    mtaSts: null,
    dane: null,
    connectionReused: false,
    dnsMs: Number,
    connectMs: Number,
    tlsMs: Number,
    transactionMs: Number,
  })
  t.ok((route?.tlsMs ?? 0) > 0, 'a handshake takes time')
  const { json } = await operate(`GET /messages/${id}`)
  t.match(json, { recipients: [{ events: [{ route }] }] }, 'the operator sees the same')
})

t.test('delivery: a kept connection, and a refusal, show theirs [message.route]', async (t) => {
  await destination('plain.test', { dot: '550 5.7.1 looks like spam' })
  const first = await messageWhen(await send(['a@plain.test']), hasEnded)
  const second = await messageWhen(await send(['b@plain.test']), hasEnded)
  t.match(first.events[0], { event: 'bounced', route: { connectionReused: false, tlsVersion: null, tlsMs: null } })
  t.match(second.events[0], { event: 'bounced', route: { connectionReused: true, connectMs: null } })
})

t.test('delivery: without a mail server there is no route [message.route]', async (t) => {
  const { events } = await messageWhen(await send(['ada@nowhere-at-all.test']), hasEnded)
  t.match(events[0], { event: 'bounced', route: null })
})
