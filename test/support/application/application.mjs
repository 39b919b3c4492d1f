/**
 * application - a small application that sends mail: sign-up with a confirmation, and a password reset
 *
 * It is an example of what developers test with a test server: `application.test.mjs` (Node's test runner),
 * `test_application.py` (pytest) and test/deep/application.ts (Playwright). It keeps everything in memory.
 */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import { Sendwright } from 'sendwright/client'

const sendwright = new Sendwright({ key: process.env.SENDWRIGHT_TOKEN, url: process.env.SENDWRIGHT_URL })
const from = { email: 'accounts@simulator.test', name: 'Acme' }
/** By address. */
const users = new Map()
/** What a link of a mail confirms, by its code. */
const codes = new Map()

const field = (name, type = 'text') => `<label>${name} <input name="${name}" type="${type}"></label>`
const form = (action, fields) => `<form method="post" action="${action}">${fields.join('')}<button>Send</button></form>`
const credentials = [field('email'), field('password', 'password')]

function newCode(act) {
  const code = randomBytes(6).toString('hex')
  codes.set(code, act)
  return code
}

function mailLink(to, { subject, words, path, code }) {
  const link = `${origin}${path}?code=${code}`
  const html = `<p>Hello!</p><p><a href="${link}">${words}</a></p>`
  return sendwright.send({ from, to: [to], subject, text: `${words}: ${link}`, html })
}

const ROUTES = {
  'GET /sign-up': () => form('/sign-up', credentials),
  'POST /sign-up': async ({ email, password }) => {
    users.set(email, { password, isConfirmed: false })
    const code = newCode(() => {
      users.get(email).isConfirmed = true
    })
    await mailLink(email, { subject: 'Confirm your address', words: 'Confirm', path: '/confirm', code })
    return 'Check your mail'
  },
  'GET /confirm': ({ code }) => {
    const act = codes.get(code)
    codes.delete(code)
    act?.()
    return act === undefined ? null : 'Your address is confirmed'
  },
  'POST /sign-in': ({ email, password }) => {
    const user = users.get(email)
    return user?.isConfirmed === true && user.password === password ? 'Welcome' : null
  },
  'GET /forgot': () => form('/forgot', [field('email')]),
  'POST /forgot': async ({ email }) => {
    const code = newCode((password) => {
      users.get(email).password = password
    })
    if (users.has(email))
      await mailLink(email, { subject: 'Reset your password', words: 'Choose a new password', path: '/reset', code })
    return 'Check your mail'
  },
  'GET /reset': ({ code }) => form(`/reset?code=${encodeURIComponent(code)}`, [field('password', 'password')]),
  'POST /reset': ({ code, password }) => {
    const act = codes.get(code)
    codes.delete(code)
    act?.(password)
    return act === undefined ? null : 'Your password is changed'
  },
}

const server = createServer(async (request, response) => {
  const { pathname, searchParams } = new URL(request.url, 'http://x')
  const route = ROUTES[`${request.method} ${pathname}`]
  const body = new URLSearchParams(request.method === 'POST' ? await text(request) : '')
  const page = route === undefined ? null : await route(Object.fromEntries([...searchParams, ...body]))
  response.writeHead(page === null ? 404 : 200, { 'Content-Type': 'text/html' }).end(page ?? 'No')
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')
const origin = `http://127.0.0.1:${server.address().port}`
console.log(origin)
