/**
 * build - `npm run build`: compiles the service and makes the dashboard's pages and the client.
 *
 * `--stale` does nothing if both are as new as their sources. A TypeScript project may be given; the tests give the
 * one that includes them (`npm run build:test`). If it is killed at any point, the build is marked as incomplete.
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { makeClientPackage } from '../client/make.mjs'
import { BUILD, faultOfBuild, faultOfNode, PROJECT, ROOT, STAMP } from './built.mjs'
import { bundle } from './bundle.mjs'

const fault = faultOfNode()
if (fault !== null) {
  console.error(fault)
  process.exit(1)
}
const [option = PROJECT] = process.argv.slice(2)
if (option !== '--stale') await build(option)
else if (faultOfBuild() !== null) await build(PROJECT)

async function build(project) {
  const begunAt = new Date()
  mkdirSync(BUILD, { recursive: true })
  rmSync(STAMP, { force: true })
  // After this the output that tsc recorded as written no longer exists.
  if (project === PROJECT) rmSync(join(BUILD, '.tsbuildinfo'), { force: true })
  console.error('Compiling ...')
  const { status } = spawnSync(process.execPath, [findCompiler(), '--project', project], {
    cwd: ROOT,
    stdio: 'inherit',
  })
  if (status !== 0) process.exit(1)
  const pages = join(BUILD, 'dashboard')
  rmSync(pages, { recursive: true, force: true })
  await bundle(ROOT, pages)
  await makeClientPackage(ROOT, join(BUILD, 'client'))
  writeFileSync(STAMP, '')
  utimesSync(STAMP, begunAt, begunAt)
}

function findCompiler() {
  try {
    const require = createRequire(import.meta.url)
    const manifest = require.resolve('typescript/package.json')
    return join(dirname(manifest), require(manifest).bin.tsc)
  } catch {
    console.error('TypeScript is not installed: run npm install')
    process.exit(1)
  }
}
