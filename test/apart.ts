/**
 * Every test of the routes once more, with the service in two processes, `http` and `actors`: a client cannot tell.
 *
 * `ROUTES=email,streams` runs those alone.
 */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'

const FILES_AT_ONCE = 2
const MS_MAX = 600_000
const FOLDER = join(import.meta.dirname, 'routes')
const only = process.env.ROUTES?.split(',') ?? null

t.jobs = FILES_AT_ONCE
t.setTimeout(MS_MAX)
for (const file of readdirSync(FOLDER).filter((name) => name.endsWith('.js'))) {
  const name = file.slice(0, -'.js'.length)
  if (only !== null && !only.includes(name)) continue
  const env = { ...process.env, TOPOLOGY: 'apart' }
  void t.spawn(process.execPath, [join(FOLDER, file)], { env, timeout: MS_MAX }, `apart: routes/${name}`)
}
