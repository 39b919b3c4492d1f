/** passkey - a new passkey is accepted from a browser if its data is small and has no attestation. */
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { promisify } from 'node:util'
import t from 'tap'
import { optionsToShow, parseUserId, verifyMade } from '../../src/dashboard/passkey.ts'
import type { User } from '../../src/state/dashboard/user.ts'
import { attestAs } from '../support/clients/attestation.ts'
import { type Attest, Authenticator } from '../support/clients/authenticator.ts'

const ORIGIN = 'http://localhost:8080'
const PARTY = { rpId: 'localhost', origins: [ORIGIN] }
const challenge = Buffer.alloc(32, 7).toString('base64url')

function make(attest?: Attest, transports?: unknown) {
  const options = { challenge, rp: { id: 'localhost' }, user: { id: 'dQ' } }
  return verifyMade(PARTY, { credential: new Authenticator(ORIGIN).make(options, attest, transports), challenge })
}

t.test('passkey: an attestation is refused, and no URL in it is fetched [session.passkey]', async (t) => {
  const listener = createServer((_, response) => response.end()).listen(0, '127.0.0.1')
  await once(listener, 'listening')
  let connections = 0
  listener.on('connection', () => {
    connections += 1
  })
  t.teardown(() => listener.close())
  const url = `http://127.0.0.1:${(listener.address() as AddressInfo).port}/revoked`
  t.match(await make(), { counter: 1 }, 'without one')
  for (const fmt of ['android-key', 'packed'] as const)
    t.match(await make(attestAs(fmt, url)), { issue: /without attestation/ }, fmt)
  t.match(await make(() => ({ fmt: 'x', statement: Buffer.from([0xa0]) })), { issue: /without attestation/ })
  t.equal(connections, 0)
})

t.test('passkey: only known transports are kept [session.passkey]', async (t) => {
  for (const [said, kept] of [
    [null, []],
    ['usb', []],
    [
      ['usb', 'x'.repeat(1000), 'nfc', 'usb', 1],
      ['nfc', 'usb'],
    ],
  ] as const) {
    const made = await make(undefined, said)
    t.match(made, { transports: [...kept] })
    const user = { passkeys: [made] } as unknown as User
    t.match(optionsToShow(PARTY, challenge, user), { allowCredentials: [{ type: 'public-key' }] })
  }
})

t.test('passkey: a user of a shard that does not exist is unknown [session.passkey]', async (t) => {
  const named = (id: string) => parseUserId({ response: { userHandle: Buffer.from(id).toString('base64url') } })
  const id = '01938a00-0000-7001-8000-000000000001'
  t.equal(named(id), id)
  t.equal(named(id.replace('-7001-', '-7fff-')), null)
})

t.test('passkey: a thread that waits for the next passkey does not hold the process', async (t) => {
  const program = `import(process.argv[1]).then(async ({ verifyMade }) => {
    const party = { rpId: 'localhost', origins: [] }
    console.log(await verifyMade(party, { credential: {}, challenge: '' }), performance.now())
    process.on('exit', () => console.log(performance.now()))
  })`
  const module = new URL('../../src/dashboard/passkey.js', import.meta.url).href
  const { stdout } = await promisify(execFile)(process.execPath, ['-e', program, module])
  const [result, verifiedMs, endedMs] = stdout.split(/\s+/)
  t.equal(result, 'null')
  t.ok(Number(endedMs) - Number(verifiedMs) < 50_000, stdout)
})
