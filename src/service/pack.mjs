/**
 * pack - `npm run pack`: makes the archive that a server installs from, `sendwright-<version>.tgz`, in build/pack/, or
 * in the folder that is named (`npm run pack -- /srv/archives`). Prints its path last.
 *
 * The archive holds the compiled service, the dashboard's pages, the documents with the site built from them, and what
 * else `files` of package.json names; no sources and no tools. In it `npm ci --omit=dev` installs exactly what
 * package-lock.json of this checkout says, from the lock file that is made here of it. The HTTP library lies in the
 * archive, with the binaries of servers alone: its package has those of ten platforms.
 *
 * `npm install` goes before. Nothing is touched but the folder of the archive.
 */
import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { bundle } from './bundle.mjs'

const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))))
/** What is compiled: the service, without benchmarks and tests. */
const COMPILED = ['schemas', 'cluster', 'src']
/** The one package that comes with the archive. */
const NATIVE = 'uWebSockets.js'
const PLATFORMS = ['linux_x64', 'linux_arm64']
/** Versions of Node.js, by the number of their binaries: 20 and 22. */
const NODES = [115, 127]
/** Scripts of package.json that need nothing but what is installed. */
const SCRIPTS = ['start', 'cluster']

const manifest = readJson('package.json')
const folder = resolve(process.argv[2] ?? join(ROOT, 'build', 'pack'))
mkdirSync(folder, { recursive: true })
const stage = mkdtempSync(join(folder, '.stage-'))
try {
  copyNamed()
  compile()
  await bundle(ROOT, join(stage, 'build', 'dashboard'))
  run('npm', ['run', '--silent', 'docs', '--', '--outDir', join(stage, 'build', 'docs')], ROOT)
  takeNative()
  writeJson('package.json', manifestOf(manifest))
  writeJson('npm-shrinkwrap.json', lockOf(readJson('package-lock.json')))
  const packed = run('npm', ['pack', '--silent', '--ignore-scripts', '--pack-destination', folder], stage).trim()
  console.log(join(folder, packed.split('\n').at(-1)))
} finally {
  rmSync(stage, { recursive: true, force: true })
}

/** Copies what `files` names and lies in the checkout, without sources: what is compiled stands for them. */
function copyNamed() {
  const isShipped = (path) => !/\.ts$|\.vitepress/.test(path) && !path.includes(join('src', 'dashboard', 'page'))
  for (const name of ['README.md', 'CHANGELOG.md', 'LICENSE', ...manifest.files.map((one) => one.replace(/\/$/, ''))])
    if (existsSync(join(ROOT, name)) && name !== 'build')
      cpSync(join(ROOT, name), join(stage, name), { recursive: true, filter: isShipped })
}

function compile() {
  const path = createRequire(import.meta.url).resolve('typescript/package.json')
  const compiler = join(dirname(path), JSON.parse(readFileSync(path, 'utf8')).bin.tsc)
  run(process.execPath, [compiler, '--project', 'tsconfig.service.json', '--outDir', join(stage, 'build')], ROOT)
  for (const name of COMPILED) if (!existsSync(join(stage, 'build', name))) throw new Error(`${name} was not compiled`)
}

function takeNative() {
  const from = join(ROOT, 'node_modules', NATIVE)
  const to = join(stage, 'vendor', NATIVE)
  const isOther = (path) => path.endsWith('.node') && !binaries().some((name) => path.endsWith(name))
  cpSync(from, to, { recursive: true, filter: (path) => !isOther(path) })
  const there = readdirSync(join(to, 'dist', 'bin')).sort()
  if (there.join() !== binaries().sort().join()) throw new Error(`${NATIVE} has only ${there.join(', ')}`)
  const { name, version, license, type, exports } = JSON.parse(readFileSync(join(from, 'package.json'), 'utf8'))
  writeJson(join('vendor', NATIVE, 'package.json'), { name, version, license, type, exports })
}

function binaries() {
  return PLATFORMS.flatMap((platform) => NODES.map((node) => `uws_${platform}_${node}.node`))
}

/** package.json of the archive: without tools and what is done with them. */
function manifestOf({ devDependencies: _tools, overrides, scripts, dependencies, ...rest }) {
  const kept = Object.fromEntries(SCRIPTS.map((name) => [name, scripts[name]]))
  return { ...rest, scripts: kept, dependencies: { ...dependencies, [NATIVE]: `file:vendor/${NATIVE}` }, overrides }
}

/** The lock file of the archive: what the service needs, as the checkout's says, and the library that comes with it. */
function lockOf({ packages, ...rest }) {
  const { '': root, [`node_modules/${NATIVE}`]: native, ...others } = packages
  const { devDependencies: _tools, ...top } = root
  const needed = Object.entries(others).filter(([, { dev }]) => dev !== true)
  const vendored = { name: native.name, version: native.version, license: native.license }
  return {
    ...rest,
    packages: {
      '': { ...top, dependencies: manifestOf(manifest).dependencies },
      ...Object.fromEntries(needed),
      [`node_modules/${NATIVE}`]: { resolved: `vendor/${NATIVE}`, link: true },
      [`vendor/${NATIVE}`]: vendored,
    },
  }
}

function run(command, args, cwd) {
  return execFileSync(command, args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })
}

function readJson(name) {
  return JSON.parse(readFileSync(join(ROOT, name), 'utf8'))
}

function writeJson(name, value) {
  writeFileSync(join(stage, name), `${JSON.stringify(value, null, 2)}\n`)
}
