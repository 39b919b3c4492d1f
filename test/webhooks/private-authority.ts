/** private-authority - a receiver whose certificate a private authority signed, as the documents say to set it up. */
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { spawnNode } from '../support/machine/node.ts'
import { startReceiver } from '../support/peers/receiver.ts'

const receiver = await startReceiver()
t.teardown(() => receiver?.close())
const skip = receiver === null && 'openssl is not installed'

t.test(
  'post: an authority that NODE_EXTRA_CA_CERTS names is trusted, and only there [webhook.attempt]',
  { skip },
  async (t) => {
    if (receiver === null) return
    const file = join(t.testdir({ 'ca.pem': receiver.ca }), 'ca.pem')
    const module = new URL('../../src/webhooks/post.js', import.meta.url).href
    const code = `
    const { makePoster } = await import(${JSON.stringify(module)})
    const poster = makePoster({ resolver: {}, privateNetworksAllowed: ['127.0.0.1/32'], webhookPorts: [], ca: null })
    const input = { url: ${JSON.stringify(receiver.url)}, headers: {}, body: '{}', fresh: false, isProven: false }
    const { statusCode, error } = await poster.post(input, new AbortController().signal)
    console.log(statusCode ?? error)
    await poster.close()`
    const said = async (env: Readonly<Record<string, string>>) => {
      const child = spawnNode(['--input-type=module', '-e', code], { env: { ...process.env, ...env } })
      return (await text(child.stdout)).trim()
    }
    t.equal(await said({ NODE_EXTRA_CA_CERTS: file }), '200')
    t.equal(await said({}), 'tls_failed: DEPTH_ZERO_SELF_SIGNED_CERT')
  },
)
