/**
 * generators - installs generators of typed clients into a separate folder, and compiles programs against the types
 *
 * They need TypeScript 5, which the repository does not use. They are installed once, without their install scripts.
 */
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { ROOT } from '../machine/root.ts'

const MS_MAX = 120_000
const CACHE = join(ROOT, 'node_modules', '.cache')
const run = promisify(execFile)
// The runner's loader is not the children's.
const { NODE_OPTIONS: _loader, ...env } = process.env

export interface Generators {
  readonly folder: string
  /** Runs a script of an installed package with Node.js. Returns its standard output. */
  node(script: string, ...args: string[]): Promise<string>
  /** Type-checks files in one run. Returns the errors of the compiler. */
  compile(sources: Readonly<Record<string, string>>, ...flags: string[]): Promise<string>
}

/** In: name of the folder, packages with their versions. Returns the reason if the registry is unreachable. */
export async function installGenerators(name: string, packages: readonly string[]): Promise<Generators | string> {
  const folder = join(CACHE, name)
  const fault = await install(folder, packages)
  if (fault !== null) return fault
  const options = { cwd: folder, env, timeout: MS_MAX }
  const node = async (script: string, ...args: string[]) =>
    (await run(process.execPath, [join(folder, 'node_modules', script), ...args], options)).stdout
  return {
    folder,
    node,
    compile: async (sources, ...flags) => {
      for (const [file, source] of Object.entries(sources)) writeFileSync(join(folder, file), source)
      const types = ['--typeRoots', join(ROOT, 'node_modules', '@types'), '--types', 'node']
      const all = ['--strict', '--skipLibCheck', '--target', 'es2022', ...flags, ...types, ...Object.keys(sources)]
      return await node('typescript/bin/tsc', ...all).then(
        () => '',
        (error: { stdout: string }) => error.stdout,
      )
    },
  }
}

async function install(folder: string, packages: readonly string[]): Promise<string | null> {
  const list = JSON.stringify(packages)
  const marker = join(folder, `installed-${Buffer.from(list).toString('base64url').slice(0, 80)}`)
  if (existsSync(marker)) return null
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{"private": true, "type": "module"}')
  const options = { cwd: folder, env, timeout: MS_MAX }
  try {
    await run('npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts', ...packages], options)
  } catch (error) {
    const isAway = await run('npm', ['ping'], options).then(
      () => false,
      () => true,
    )
    if (isAway) return 'the npm registry is unreachable'
    throw error
  }
  writeFileSync(marker, list)
  return null
}
