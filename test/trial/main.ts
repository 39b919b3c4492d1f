/**
 * main - `npm run trial`: the day of a new operator, with only the commands of the documents
 *
 * From the archive on a machine with systemd to a verified domain, a delivered mail, a restored backup, an upgrade and
 * a downgrade, many processes, and a roll under load; and the archive alone on other versions of Node.js. Only
 * Debian's packages are fetched. `--root <folder>` uses an empty system (debootstrap) as the machine, and also runs
 * the commands that install packages; without it the machine is built from this one. If none can be built, it says so
 * and passes. On an empty one the steps of the Dockerfile run too. `--only versions`, `day` or `image` runs one part.
 * Exit code 1 means that something differed from the documents.
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { ROOT } from '../support/machine/root.ts'
import type { Place } from './commands.ts'
import { runDay } from './day.ts'
import { runImage } from './image.ts'
import { Machine } from './machine.ts'
import { tryVersion } from './versions.ts'

/** The version that the documents upgrade to. */
const NEXT = '0.2.0'
/** Node.js with and without a native module of the HTTP library. */
const VERSIONS = ['22', '24'] as const
const PLAIN_ROOT = '/'

const startMs = performance.now()
const say = (line: string): void => {
  const seconds = ((performance.now() - startMs) / 1000).toFixed(1).padStart(6)
  console.log(`${seconds} s  ${line}`)
}

for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => process.exit(1))
const { values } = parseArgs({ options: { root: { type: 'string' }, only: { type: 'string' } } })
const lower = resolve(values.root ?? PLAIN_ROOT)
const isWanted = (part: string): boolean => (values.only ?? part) === part
const dir = mkdtempSync(join(tmpdir(), 'sendwright-archives-'))
try {
  const archive = must('npm', ['run', '--silent', 'pack', '--', dir]).trim().split('\n').at(-1) as string
  say(`packed ${archive}`)
  if (isWanted('versions')) for (const version of VERSIONS) await tryVersion(version, { archive, dir, say })
  const archives = [archive, repacked(archive)]
  if (isWanted('day')) await onMachine((place) => runDay({ ...place, archives }))
  if (lower !== PLAIN_ROOT && isWanted('image')) await onMachine((place) => runImage(place, archive))
  say('all as the documents say')
} finally {
  rmSync(dir, { recursive: true, force: true })
}

/** Runs it on a separate machine, or prints why there is none. */
async function onMachine(act: (place: Place) => Promise<void>): Promise<void> {
  const machine = await Machine.boot(lower).catch((error: Error) => error)
  if (machine instanceof Error) return say(`SKIPPED on a machine of its own: ${machine.message}`)
  try {
    say(`a machine with systemd, over ${lower}`)
    await act({ machine, isEmpty: lower !== PLAIN_ROOT, say })
  } finally {
    await machine.end()
  }
}

/** The same archive, as the version that comes next. */
function repacked(archive: string): string {
  const folder = join(dir, 'next')
  mkdirSync(folder)
  must('tar', ['-xzf', archive, '-C', folder])
  const { version } = JSON.parse(must('tar', ['-xzOf', archive, 'package/package.json'])) as { version: string }
  for (const name of ['package.json', 'npm-shrinkwrap.json'])
    must('sed', ['-i', `0,/"version": "${version}"/s//"version": "${NEXT}"/`, join(folder, 'package', name)])
  const path = join(dir, `sendwright-${NEXT}.tgz`)
  must('tar', ['-czf', path, '-C', folder, 'package'])
  writeFileSync(`${path}.sha256`, must('sh', ['-c', `cd ${dir} && sha256sum ${basename(path)}`]))
  return path
}

function must(command: string, args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd: ROOT, encoding: 'utf8', maxBuffer: 2 ** 28 })
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${stderr}`)
  return stdout
}
