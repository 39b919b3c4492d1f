/** reads - a message of a sealed segment takes few reads of the content store, and none of a replaced object. */
import { rmSync } from 'node:fs'
import t from 'tap'
import type { Contents } from '../../../src/content/contents.ts'
import { readStoredMessage } from '../../../src/views/message/message.ts'
import { Cold } from '../../support/world/cold.ts'
import { makeSetting, ownerOf, PEOPLE, type Setting } from '../../support/world/cold-mail.ts'
import { order } from '../../support/world/erasure.ts'

/** A sealed log whose reads of the content store are counted. */
async function sealedLog(setting: Setting, t: { teardown(end: () => unknown): void }) {
  const { world, tenant, ids } = setting
  const asked: string[] = []
  const counted = (made: Contents): Partial<Contents> => ({
    read(wanted) {
      asked.push('read')
      return made.read(wanted)
    },
    front(name) {
      asked.push('front')
      return made.front(name)
    },
  })
  const cold = new Cold(world, { contents: counted })
  t.teardown(() => cold.close())
  world.fireTimers()
  await cold.settle()
  asked.length = 0
  const read = (n: number) => {
    return readStoredMessage({ read: cold.read, nowMs: () => world.nowMs }, ownerOf(tenant), ids[n] as string)
  }
  return { cold, asked, read }
}

t.test('a message takes one read once its segment is known, and its neighbours of the same moment none', async (t) => {
  const setting = makeSetting(t, 60)
  const { asked, read } = await sealedLog(setting, t)
  t.match(await read(3), { head: { subject: 'Order 3' } })
  t.same(asked, ['read'], 'the tail is known since the object was read back')
  asked.length = 0
  t.match(await read(4), { head: { subject: 'Order 4' } })
  t.same(asked, [])
  setting.world.nowMs += 6_000
  t.match(await read(4), { head: { subject: 'Order 4' } })
  t.same(asked, ['read'])
})

t.test('a replaced object answers nothing, even at the moment of the swap', async (t) => {
  const setting = makeSetting(t, 60)
  const { world, tenant } = setting
  const { cold, read } = await sealedLog(setting, t)
  t.match(await read(2), { head: { subject: 'Order 2' } })
  order(world, tenant, PEOPLE[2] as string)
  world.fireTimers()
  await cold.settle()
  t.match(await read(2), { head: { subject: null } })
})

t.test('an object that has gone is found gone although its first bytes are known', async (t) => {
  const setting = makeSetting(t, 60)
  const { cold, read } = await sealedLog(setting, t)
  t.match(await read(3), { head: { subject: 'Order 3' } })
  rmSync(cold.folder, { recursive: true })
  setting.world.nowMs += 6_000
  await t.rejects(read(3), { message: 'A stored value is damaged' })
  t.same(cold.reads.slice(-1), ['gone'])
})
