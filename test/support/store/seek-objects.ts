/** seek-objects - whether a word is in the content store, with its objects opened by the keys in head rows */
import { readdirSync } from 'node:fs'
import type { Redis } from 'ioredis'
import { withoutSum } from '../../../cluster/sum.ts'
import { makeContents } from '../../../src/content/contents.ts'
import { contentFolder, makeFileHome } from '../../../src/content/files.ts'
import { openMailKey } from '../../../src/state/ring/sealing.ts'
import { ringOf } from '../world/rings.ts'
import type { Seeker } from './seek.ts'

/** The objects and their keys, and the word. */
interface SoughtObjects {
  readonly redis: Redis
  readonly dataDir: string
  readonly secretKey: string
  readonly seeker: Seeker
}

/** Sealed keys of all mails whose head rows are in Redis. */
async function sealedKeys(redis: Redis): Promise<string[]> {
  const keys: string[] = []
  for (const name of await redis.keys('*:received-head:*'))
    for (const row of await redis.hvals(name)) keys.push((JSON.parse(withoutSum(row, 'row')) as string[])[1] as string)
  for (const name of await redis.keys('*:head:*'))
    if ((await redis.type(name)) === 'hash')
      for (const row of await redis.hvals(name)) {
        const stored = (JSON.parse(withoutSum(row, 'row')) as unknown[])[6]
        if (Array.isArray(stored)) keys.push(stored[0] as string)
      }
  return keys
}

/** Objects of the content store that one of the keys opens and that hold the word. */
export async function seekInObjects({ redis, dataDir, secretKey, seeker }: SoughtObjects): Promise<string[]> {
  const ring = ringOf(secretKey)
  const root = contentFolder(dataDir)
  const none = () => undefined
  const contents = makeContents({
    home: makeFileHome(root, { worker: () => 'seeker' }),
    room: null,
    told: none,
    warn: none,
  } as never)
  const names = (readdirSync(root, { recursive: true, encoding: 'utf8' }) as string[]).filter((name) =>
    /^\d{3}\/(?:in|out)\/\d{8}\/./.test(name),
  )
  const found: string[] = []
  for (const sealed of await sealedKeys(redis))
    for (const name of names)
      for (const kind of ['mail', 'parsed', 'body', 'files'] as const) {
        const mailKey = openMailKey(ring, sealed)
        if (mailKey === null) throw new Error('A key does not open')
        const read = await contents.read({ name, mailKey, kind })
        if (typeof read !== 'string' && seeker.isIn(Buffer.from(read))) found.push(`${name} (${kind})`)
      }
  return found
}
