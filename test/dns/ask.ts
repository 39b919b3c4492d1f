/** ask - names that c-ares refuses, put to real servers: UDP, TCP, forged replies, servers that fail or are silent. */
import { createSocket, type RemoteInfo, type Socket } from 'node:dgram'
import t, { type Test } from 'tap'
import { ask } from '../../src/dns/ask.ts'
import { createResolver } from '../../src/dns/resolve.ts'
import { freePort } from '../support/machine/port.ts'
import { encodeAnswer } from '../support/peers/dns-answer.ts'
import { startZone } from '../support/peers/zone.ts'

const NAME = "prvs=123+ada'.b.test"

async function open(t: Test) {
  const zone = await startZone()
  t.teardown(() => zone.close())
  const { signal } = new AbortController()
  const asking = (type: 'A' | 'TXT', name: string, servers = [zone.server]) =>
    ask(type, name, { servers, timeoutMs: 300, signal })
  return { zone, asking }
}

/** A server whose replies the test writes. */
async function scripted(t: Test, reply: (request: Buffer, socket: Socket, peer: RemoteInfo) => void): Promise<string> {
  const socket = createSocket('udp4')
  socket.on('message', (request, peer) => reply(request, socket, peer))
  const port = await freePort()
  await new Promise<void>((resolve) => socket.bind(port, '127.0.0.1', resolve))
  t.teardown(() => socket.close())
  return `127.0.0.1:${port}`
}

const answered = (request: Buffer, { id = request.readUInt16BE(0), name = NAME, address = '192.0.2.1' } = {}) =>
  encodeAnswer({
    id,
    question: { name, type: 1 },
    code: 0,
    isTruncated: false,
    answers: [{ name, record: { type: 'A', address } }],
  })

t.test('ask: records, no records, no name, a failure, an answer over TCP', async (t) => {
  const { zone, asking } = await open(t)
  zone.set(NAME, { type: 'A', address: '192.0.2.1' })
  t.same(await asking('A', NAME), { status: 'ok', records: ['192.0.2.1'] })
  t.same(await asking('TXT', NAME), { status: 'nodata' })
  t.same(await asking('A', `x${NAME}`), { status: 'nxdomain' })
  t.same(await asking('A', 'a..b'), { status: 'nxdomain' })
  zone.fail(NAME, 'servfail')
  t.same(await asking('A', NAME), { status: 'failure', code: 'ESERVFAIL' })
  t.equal(zone.asked.length, 5, 'a failure is tried twice, a name that cannot be is not asked')
  zone.fail(NAME, 'truncated')
  t.same(await asking('A', NAME), { status: 'failure', code: 'EBADRESP' })
  zone.set(NAME, { type: 'TXT', data: 'x'.repeat(60_000) })
  const large = await asking('TXT', NAME)
  t.equal(large.status === 'ok' && (large.records[0] as string[]).join('').length, 60_000)
})

t.test('ask: a reply with another id, name or sender does not count', async (t) => {
  const { asking } = await open(t)
  const other = createSocket('udp4')
  t.teardown(() => other.close())
  const server = await scripted(t, (request, socket, peer) => {
    const forged = { address: '203.0.113.66' }
    socket.send(answered(request, { ...forged, id: request.readUInt16BE(0) ^ 1 }), peer.port, peer.address)
    socket.send(answered(request, { ...forged, name: 'evil.test' }), peer.port, peer.address)
    socket.send(Buffer.from('noise'), peer.port, peer.address)
    other.send(answered(request, forged), peer.port, peer.address, () =>
      setTimeout(() => socket.send(answered(request), peer.port, peer.address), 50),
    )
  })
  t.same(await asking('A', NAME, [server]), { status: 'ok', records: ['192.0.2.1'] })
})

t.test('ask: ids and ports differ from try to try', async (t) => {
  const { asking } = await open(t)
  const ids = new Set<number>()
  const ports = new Set<number>()
  const server = await scripted(t, (request, socket, peer) => {
    ids.add(request.readUInt16BE(0))
    ports.add(peer.port)
    socket.send(answered(request), peer.port, peer.address)
  })
  for (let n = 0; n < 20; n += 1) await asking('A', NAME, [server])
  t.ok(ids.size > 15 && ports.size > 10, `${ids.size} ids, ${ports.size} ports`)
})

t.test('ask: a silent server, then another one; none; two silent ones', async (t) => {
  const { zone, asking } = await open(t)
  zone.set(NAME, { type: 'A', address: '192.0.2.1' })
  const silent = await scripted(t, () => undefined)
  t.same(await asking('A', NAME, [silent, zone.server]), { status: 'ok', records: ['192.0.2.1'] })
  t.same(await asking('A', NAME, []), { status: 'failure', code: 'ECONNREFUSED' })
  const before = performance.now()
  t.same(await asking('A', NAME, [silent]), { status: 'failure', code: 'ETIMEOUT' })
  t.ok(performance.now() - before >= 550, 'two tries of 300 ms')
  t.same(await asking('A', NAME, [`127.0.0.1:${await freePort()}`]), { status: 'failure', code: 'ECONNREFUSED' })
  t.same(await asking('A', NAME, ['[::1]:9', zone.server]), { status: 'ok', records: ['192.0.2.1'] }, 'IPv6 refuses')
})

t.test('ask: the resolver asks for such names itself, caches, and cancels', async (t) => {
  const zone = await startZone()
  const resolver = createResolver({ servers: [zone.server], nowMs: () => 0 })
  t.teardown(() => zone.close())
  const names = [...'+=\'#!$&^`{|}~ "@(;,:<%\\'].map((char) => `a${char}b.test`)
  for (const name of names) zone.set(name, { type: 'A', address: '192.0.2.1' })
  for (const name of [...names, ...names])
    t.same(await resolver.look('A', name), { status: 'ok', records: ['192.0.2.1'] }, name)
  t.same(
    zone.asked,
    names.map((name) => `A ${name}`),
    'each once',
  )
  zone.fail('a+b.test', 'timeout')
  const asked = resolver.look('TXT', 'a+b.test')
  resolver.close()
  t.same(await asked, { status: 'failure', code: 'ECANCELLED' })
})
