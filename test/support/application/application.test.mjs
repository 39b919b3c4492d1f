/** application.test - sign-up and password reset, tested with Node's test runner: at most ten lines for a mail. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { Sendwright } from 'sendwright/client'

const { messages } = new Sendwright({ key: process.env.SENDWRIGHT_TOKEN, url: process.env.SENDWRIGHT_URL })
const post = (path, body) => fetch(process.env.APPLICATION + path, { method: 'POST', body: new URLSearchParams(body) })
const email = `node.${Date.now()}@simulator.test`

test('a new user confirms the address', async () => {
  await post('/sign-up', { email, password: 'first' })
  assert.equal((await post('/sign-in', { email, password: 'first' })).status, 404)
  const mail = await messages.wait({ recipient: email, subject: 'confirm' })
  await fetch(mail.links[0].href)
  assert.equal((await post('/sign-in', { email, password: 'first' })).status, 200)
})

test('a user chooses a new password', async () => {
  await post('/forgot', { email })
  const mail = await messages.wait({ recipient: email, subject: 'reset password' })
  assert.match(mail.text, /^Choose a new password: http/)
  await post(mail.links[0].href.slice(process.env.APPLICATION.length), { password: 'second' })
  assert.equal((await post('/sign-in', { email, password: 'second' })).status, 200)
})
