/**
 * deploy - the contents of docs/deploy/ and of the archive: units that systemd accepts, a Dockerfile and a compose
 * file that agree with docs/operate/install.md step by step, known settings, and an archive that holds only the files
 * a server needs
 *
 * `npm run trial` runs all of it on a separate machine.
 */
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { SETTINGS } from '../../schemas/config.ts'
import { readConfig } from '../../src/process/config.ts'
import { blocksOf } from '../support/documents/blocks.ts'
import { ROOT } from '../support/machine/root.ts'

/** Of 10; a service without any protection has 9.6. */
const EXPOSURE_MAX = 2
/** Numbers of machines in ELF headers. */
const ELF_MACHINES = { x64: 62, arm64: 183 }
/** Keys of this systemd that earlier versions ignore with a warning. */
const STEPS_SINCE = 254
const STEPS = /^Restart(?:Steps|MaxDelaySec)=.*\n/gm
const UNITS = ['sendwright.service', 'sendwright@.service', 'sendwright-store.service']
/** They run a client of the service and end. */
const OTHERS = ['sendwright-doctor.service', 'sendwright-doctor.timer']
const SOCKETS = ['sendwright.socket', 'sendwright@mx.socket', 'sendwright@submission.socket']
const dir = mkdtempSync(join(tmpdir(), 'sendwright-deploy-'))
t.teardown(() => rmSync(dir, { recursive: true }))

const textOf = (path: string): string => readFileSync(join(ROOT, path), 'utf8')
const { version } = JSON.parse(textOf('package.json')) as { version: string }
const systemd = Number(/^systemd (\d+)/.exec(run('systemd-analyze', ['--version']).out ?? '')?.[1] ?? 0)

function run(command: string, args: readonly string[], cwd = ROOT) {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd, encoding: 'utf8' })
  return { status, out: stdout, err: stderr }
}

t.test(
  'deploy: systemd takes the units, and they are closed',
  { skip: systemd === 0 && 'no systemd-analyze' },
  async (t) => {
    // A root with the files that the units name.
    const units = join(dir, 'etc/systemd/system')
    for (const folder of [units, join(dir, 'opt/sendwright'), join(dir, 'etc/sendwright')])
      mkdirSync(folder, { recursive: true })
    mkdirSync(join(dir, 'bin'))
    for (const command of ['opt/sendwright/sendwright', 'bin/kill']) {
      writeFileSync(join(dir, command), '#!/bin/sh\n')
      chmodSync(join(dir, command), 0o755)
    }
    const known = (text: string): string => (systemd >= STEPS_SINCE ? text : text.replace(STEPS, ''))
    for (const name of [...UNITS, ...SOCKETS, ...OTHERS])
      writeFileSync(join(units, name), known(textOf(`docs/deploy/${name}`)))
    for (const name of [...UNITS, ...SOCKETS, ...OTHERS]) {
      const asked = name.replace('@.', '@http-1.')
      const { status, out, err } = run('systemd-analyze', [
        'verify',
        '--man=no',
        `--root=${dir}`,
        '--recursive-errors=no',
        asked,
      ])
      t.equal(status, 0, out + err)
      t.notMatch(err, new RegExp(name.replace('@', '@?')), 'without a warning')
      if (!UNITS.includes(name)) continue
      const threshold = `--threshold=${EXPOSURE_MAX * 10}`
      const judged = run('systemd-analyze', ['security', '--offline=true', threshold, join(ROOT, 'docs/deploy', name)])
      t.equal(judged.status, 0, judged.out.slice(-200) + judged.err)
    }
    writeFileSync(
      join(units, UNITS[0] as string),
      textOf(`docs/deploy/${UNITS[0]}`).replace('ExecStart=', 'ExecStart=relative/'),
    )
    t.not(
      run('systemd-analyze', ['verify', '--man=no', `--root=${dir}`, UNITS[0] as string]).status,
      0,
      'a mistake is seen',
    )
  },
)

t.test('deploy: the Dockerfile has the steps of docs/operate/install.md', async (t) => {
  const steps = [...textOf('docs/deploy/Dockerfile').matchAll(/^RUN (.*)$/gm)]
    .flatMap(([, step = '']) => step.replaceAll('$VERSION', version).split(' && '))
    .filter((step) => step !== 'rm -rf /var/lib/apt/lists/*')
  const lines = blocksOf('docs/operate/install.md')
    .filter(({ language }) => language === 'bash')
    .flatMap(({ code }) => code.trim().split('\n'))
    .map((line) => line.replace(/ +#.*$/, ''))
  const shared = lines.slice(
    0,
    lines.findIndex((line) => line.includes('/etc/sendwright')),
  )
  // An image has no systemd, so no service of the package runs, and a step creates the unit's directory.
  const without = shared.filter((line) => !line.startsWith('systemctl '))
  // Its stages have an order of their own, which the trial takes.
  t.same(steps.sort(), [...without, 'install -d -m 700 -o sendwright -g sendwright /var/lib/sendwright'].sort())
  const stages = textOf('docs/deploy/Dockerfile')
    .split(/^FROM /m)
    .slice(1)
  t.equal(stages.length, 2)
  t.notMatch(stages[1], /\.tgz/, 'the archive is no layer of the image')
  t.match(stages[1], /^USER sendwright$/m)
  t.match(textOf('docs/deploy/Dockerfile'), `ARG VERSION=${version}\n`)
  const command = /^CMD (.*)$/m.exec(textOf('docs/deploy/Dockerfile'))?.[1] ?? '[]'
  t.equal(
    (JSON.parse(command) as string[]).join(' '),
    /^ExecStart=(.*)$/m.exec(textOf('docs/deploy/sendwright.service'))?.[1],
  )
})

t.test('deploy: compose.yaml runs that image with these settings, and loses no data with it', async (t) => {
  const { services, volumes } = parse(textOf('docs/deploy/compose.yaml'))
  const { sendwright } = services
  t.same(Object.keys(services), ['sendwright'])
  t.equal(sendwright.image, `sendwright:${version}`)
  t.same(sendwright.build, { context: '.', args: { VERSION: version } })
  t.equal(sendwright.env_file, 'settings')
  t.same(sendwright.volumes, ['data:/var/lib/sendwright'])
  t.ok('data' in volumes)
  t.match(sendwright, { read_only: true, tmpfs: ['/tmp'], cap_drop: ['ALL'] })
  const names = SETTINGS.map(({ name }) => String(name))
  const dockerNames = [...textOf('docs/deploy/Dockerfile').matchAll(/^ENV (\w+)=/gm)].map(([, name = '']) => name)
  for (const name of [...dockerNames, ...Object.keys(sendwright.environment)]) t.ok(names.includes(String(name)), name)
  const given = settingsOf('docs/deploy/settings')
  const inside = sendwright.ports.map((port: string) => port.split(':').at(-1))
  t.same(inside.sort(), [given.HTTP_PORT, given.MX_PORT, given.SUBMISSION_PORT, given.SUBMISSION_TLS_PORT].sort())
})

t.test('deploy: the settings are settings, and a start takes them', async (t) => {
  const given = settingsOf('docs/deploy/settings')
  t.match(readConfig(given), { ok: true, config: { mxPort: 25, dataDir: '/var/lib/sendwright' } })
  const commented = [...textOf('docs/deploy/settings').matchAll(/^#(\w+)=/gm)].map(([, name = '']) => name)
  for (const name of [...Object.keys(given), ...commented])
    t.ok(
      SETTINGS.some((one) => one.name === name),
      name,
    )
})

t.test('deploy: the documents install the version that this is', async (t) => {
  for (const document of ['docs/operate/install.md', 'docs/operate/upgrade.md']) {
    const named = [...textOf(document).matchAll(/sendwright-(\d+\.\d+\.\d+)/g)].map(([, one]) => one)
    t.ok(named.includes(version), document)
  }
})

t.test('deploy: the archive holds what a server needs, and neither sources nor tools', async (t) => {
  const packed = run(process.execPath, ['src/service/pack.mjs', dir])
  t.equal(packed.status, 0, packed.err)
  const archive = packed.out.trim().split('\n').at(-1) ?? ''
  t.equal(archive, join(dir, `sendwright-${version}.tgz`))
  t.same(
    readdirSync(dir).filter((name) => name.startsWith('.stage')),
    [],
  )
  const names = run('tar', ['-tzf', archive]).out.trim().split('\n')
  const wanted = [
    'sendwright',
    'build/src/cli/main.js',
    'docs/operate/install.md',
    'docs/deploy/sendwright.service',
    'CHANGELOG.md',
    'LICENSE',
    'THIRD-PARTY-NOTICES',
    'SHA256SUMS',
    'npm-shrinkwrap.json',
    'sbom.cdx.json',
  ]
  for (const name of wanted) t.ok(names.includes(`package/${name}`), name)
  t.same(
    // The client is a separate package with its declarations.
    names.filter((name) => /^(?!.*\/client\/).*\.ts$|^package\/(test|bench)\/|build\/(test|bench)/.test(name)),
    [],
  )
  t.equal(run('sha256sum', ['--check', `${basename(archive)}.sha256`], dir).status, 0)
  t.equal(run('tar', ['-xzf', archive, '-C', dir]).status, 0)
  const place = join(dir, 'package')
  t.equal(run('sha256sum', ['--check', '--quiet', 'SHA256SUMS'], place).status, 0)
  const summed = readFileSync(join(place, 'SHA256SUMS'), 'utf8').trim().split('\n')
  t.equal(summed.length, names.filter((name) => !name.endsWith('/')).length - 1, 'every other file has its digest')
  t.same(nativeOf(names, place), {
    linux_arm64_115: ELF_MACHINES.arm64,
    linux_arm64_127: ELF_MACHINES.arm64,
    linux_x64_115: ELF_MACHINES.x64,
    linux_x64_127: ELF_MACHINES.x64,
  })
  const read = (name: string) => JSON.parse(readFileSync(join(place, name), 'utf8'))
  const [manifest, lock] = [read('package.json'), read('npm-shrinkwrap.json')]
  t.notOk(manifest.devDependencies)
  const entries = Object.entries(lock.packages as Record<string, { dev?: boolean; resolved?: string }>)
  t.ok(entries.length > 100)
  for (const [path, { dev, resolved }] of entries) {
    t.notOk(dev, path)
    t.notMatch(resolved ?? '', /:\/\//, `${path} names no host`)
  }
  t.same(Object.keys(lock.packages['']?.dependencies ?? {}).sort(), Object.keys(manifest.dependencies).sort())
  const paths = entries.map(([path]) => path).filter((path) => path !== '')
  const notices = readFileSync(join(place, 'THIRD-PARTY-NOTICES'), 'utf8')
  for (const path of paths) {
    const { name, version } = read(`${path}/package.json`)
    t.match(notices, `- ${name} ${version}: `, path)
  }
  for (const text of [
    'Copyright © 2018 Alex Hultman',
    'Apache License\n',
    'SIL OPEN FONT LICENSE',
    '- preact ',
    '- redoc ',
  ])
    t.match(notices, text)
  const { bomFormat, metadata, components } = read('sbom.cdx.json')
  t.match({ bomFormat, name: metadata.component.name }, { bomFormat: 'CycloneDX', name: 'sendwright' })
  // A package of one version at two places is one component.
  const packages = paths.map((path) => read(`${path}/package.json`) as { name: string; version: string })
  t.equal(components.length, new Set(packages.map(({ name, version }) => `${name}@${version}`)).size)
  const env = { ...process.env, npm_config_registry: 'http://127.0.0.1:9', HOME: dir }
  const started = spawnSync(join(place, 'sendwright'), ['--version'], { cwd: dir, env, encoding: 'utf8' })
  t.equal(started.stdout.trim(), version, started.stderr)
})

/** Native modules among files, and the `e_machine` of each (ELF header, bytes 18 and 19). */
function nativeOf(names: readonly string[], place: string): Record<string, number> {
  const found = names.filter((name) => name.endsWith('.node'))
  const machineOf = (name: string): number => readFileSync(join(dirname(place), name)).readUInt16LE(18)
  return Object.fromEntries(found.map((name) => [name.replace(/.*uws_(.*)\.node/, '$1'), machineOf(name)]))
}

/** Names and values of a file of settings. */
function settingsOf(path: string): Record<string, string> {
  return Object.fromEntries([...textOf(path).matchAll(/^(\w+)=(.*)$/gm)].map(([, name, value]) => [name, value]))
}
