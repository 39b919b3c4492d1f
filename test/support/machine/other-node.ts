/** other-node - other versions of Node.js, which packages of npm bring. */
import { spawnSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'

/** Versions that are supported, by their major number. */
export const SUPPORTED = ['20', '22', '24', '26'] as const

/** Unpacks a version into a new folder of `dir`. Returns the folder of its `node`, or null if it cannot be fetched. */
export function fetchNode(major: string, dir: string): string | null {
  const folder = join(dir, `node-${major}`)
  mkdirSync(folder)
  const name = `node-linux-${process.arch}@${major}`
  const fetched = spawnSync('npm', ['pack', '--silent', name], { cwd: folder, encoding: 'utf8' })
  const archive = fetched.stdout.trim().split('\n').at(-1) ?? ''
  if (fetched.status !== 0 || spawnSync('tar', ['-xzf', archive], { cwd: folder }).status !== 0) return null
  return join(folder, 'package', 'bin')
}
