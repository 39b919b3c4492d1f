/**
 * make - makes the client as a package has it: a module and one file of declarations for each of its two entries
 *
 * The declarations of all files are combined into one without imports, so a program that uses the client needs no
 * types except those of its runtime, and not even these.
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'

const ENTRIES = ['sendwright', 'nodemailer']
const HEAD = '// The types of the client, put into one file from its sources.\n'
/** Not relevant to callers; nodemailer's has its own file. */
const LEFT_OUT = /^(?:exchange|pages|nodemailer)\.d\.ts$/

/** Makes it. Takes the folder of the project, and the output folder. Throws what the compilers print. */
export async function makeClientPackage(root, into) {
  const esbuild = await import('esbuild')
  const source = join(root, 'src', 'client')
  rmSync(into, { recursive: true, force: true })
  mkdirSync(into, { recursive: true })
  await esbuild.build({
    absWorkingDir: root,
    entryPoints: ENTRIES.map((entry) => ({ in: join(source, `${entry}.ts`), out: entry })),
    outdir: into,
    bundle: true,
    format: 'esm',
    platform: 'neutral',
    target: ['es2022', 'node18'],
    minify: true,
    keepNames: true,
    legalComments: 'none',
    plugins: [{ name: 'other-entry', setup: leaveOtherEntry }],
    logLevel: 'silent',
  })
  const folder = mkdtempSync(join(into, '.types-'))
  try {
    declare(source, folder)
    const files = ['.', 'shapes'].flatMap((name) => declarationsIn(join(folder, name)))
    writeFileSync(join(into, 'sendwright.d.ts'), HEAD + files.map(withoutImports).join('\n'))
    const transport = readFileSync(join(folder, 'nodemailer.d.ts'), 'utf8')
    writeFileSync(join(into, 'nodemailer.d.ts'), transport.replace(/'\.\/[\w-]+\.(?:ts|js)'/g, "'./sendwright.js'"))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The transport imports the client from the module beside it. */
function leaveOtherEntry({ onResolve }) {
  onResolve({ filter: /^\.\/sendwright\.ts$/ }, () => ({ path: './sendwright.js', external: true }))
}

function declare(source, folder) {
  const require = createRequire(import.meta.url)
  const manifest = require.resolve('typescript/package.json')
  const compiler = join(manifest, '..', require(manifest).bin.tsc)
  execFileSync(process.execPath, [compiler, '--project', source, '--outDir', folder], { stdio: ['ignore', 2, 2] })
}

function declarationsIn(folder) {
  const names = readdirSync(folder).filter((name) => name.endsWith('.d.ts') && !LEFT_OUT.test(name))
  return names.sort().map((name) => readFileSync(join(folder, name), 'utf8'))
}

/** Without the header of the file, and without what its other lines have from the files around it. */
function withoutImports(text) {
  return text
    .replace(/^\/\*\*.*?\*\/\n/s, '')
    .replace(/^(?:import|export) (?:type )?(?:\{[^}]*\}|\*) from '[^']*';?\n/gm, '')
    .replace(/^export \{\};?\n/gm, '')
}
