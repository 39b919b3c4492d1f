/** mx-watch - told once no process has taken bounces for ten seconds, once, and again when one does. */
import t from 'tap'
import { makeMxLook } from '../../src/service/mx-watch.ts'

t.test('mx watch: a gap is not told, an absence is, once', async (t) => {
  const told: string[] = []
  let nowMs = 0
  let roles: ReadonlySet<string> | null = new Set(['actors'])
  const look = makeMxLook({
    roles: async () => {
      if (roles === null) throw new Error('The store is away')
      return roles
    },
    log: { info: (_: object, text: string) => told.push(text), warn: (_: object, text: string) => told.push(text) },
    nowMs: () => nowMs,
  })
  const after = async (ms: number): Promise<string[]> => {
    nowMs += ms
    await look()
    return told.splice(0)
  }
  t.same(await after(0), [])
  t.same(await after(9_999), [], 'others may still come')
  roles = null
  t.same(await after(5_000), [], 'a store that is away says nothing of who listens')
  roles = new Set(['actors'])
  t.match(await after(1), [/^No process takes bounces and complaints.*Start one with ROLES=mx/])
  t.same(await after(60_000), [], 'once')
  roles = new Set(['mx'])
  t.same(await after(1), ['Bounces and complaints are received again'])
  roles = new Set(['actors'])
  t.same(await after(5_000), [], 'one that is replaced leaves a gap')
  roles = new Set(['mx'])
  t.same(await after(5_000), [])
  roles = new Set()
  await after(1)
  t.equal((await after(10_000)).length, 1, 'and the next absence is told too')
})
