/**
 * image - the Dockerfile without Docker: its steps one by one on a separate machine, then its command as its user with
 * the settings of compose.yaml, its health check, a sent mail, and the stop
 */
import { copyFileSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { ROOT } from '../support/machine/root.ts'
import { must, type Place } from './commands.ts'

const INSTRUCTION = /^(FROM|ARG|RUN|COPY|VOLUME|USER|WORKDIR|ENV|EXPOSE|HEALTHCHECK|CMD) (.*)$/
const LOG = '/root/image.log'

/** Takes the steps. Throws Error with the one that fails; an instruction that is not known is one. */
export async function runImage(place: Place, archive: string): Promise<void> {
  const text = readFileSync(join(ROOT, 'docs/deploy/Dockerfile'), 'utf8')
  const settings: Record<string, string> = {}
  const known = { user: 'root', folder: '/root', command: '', health: '' }
  let version = ''
  for (const line of text.split('\n').filter((one) => one !== '' && !one.startsWith('#'))) {
    const [, name, rest = ''] = INSTRUCTION.exec(line) ?? []
    const step = rest.replaceAll('$VERSION', version)
    if (name === 'ARG') version = /^VERSION=(.*)$/.exec(step)?.[1] ?? version
    else if (name === 'RUN') await must(place, step)
    else if (name === 'COPY' && step.startsWith('--from=')) continue
    else if (name === 'COPY')
      for (const one of step.split(' ').slice(0, -1))
        copyFileSync(join(dirname(archive), one), join(place.machine.root, 'root', one))
    else if (name === 'USER') known.user = step
    else if (name === 'WORKDIR') known.folder = step
    else if (name === 'ENV') Object.assign(settings, Object.fromEntries([step.split(/=(.*)/s).slice(0, 2)]))
    else if (name === 'HEALTHCHECK') known.health = step.replace(/^.*CMD /, '')
    else if (name === 'CMD') known.command = (JSON.parse(step) as string[]).join(' ')
    else if (name === undefined) throw new Error(`An instruction that nobody here knows: ${line}`)
  }
  const named = Object.entries(settings).map(([name, value]) => `${name}=${value}`)
  // In this very process, as Docker does.
  const become = `setpriv --reuid=${known.user} --regid=${known.user} --clear-groups`
  const asUser = (command: string): string => `cd ${known.folder}\nexec ${become} env ${named.join(' ')} ${command}`
  // Docker lets any user have ports below 1024.
  await must(
    place,
    'sysctl -qw net.ipv4.ip_unprivileged_port_start=0 || echo 0 > /proc/sys/net/ipv4/ip_unprivileged_port_start',
  )
  const started = `set -a; . /opt/sendwright/docs/deploy/settings; set +a\n(${asUser(known.command)}) >${LOG} 2>&1 </dev/null & echo $!`
  const pid = (await must(place, started)).trim()
  await must(
    place,
    `for i in $(seq 60); do ${known.health} 2>/dev/null && exit 0; kill -0 ${pid}; sleep 1; done; cat ${LOG}; exit 1`,
  )
  const send = 'sendwright send --from a@simulator.test --to b@simulator.test --subject S --text T --wait'
  const sent = await must(place, asUser(send))
  if (!sent.includes('delivered')) throw new Error(sent)
  await must(place, `kill -TERM ${pid}; for i in $(seq 20); do [ -d /proc/${pid} ] || exit 0; sleep 1; done; exit 1`)
  const left = await must(place, `find /proc -maxdepth 1 -regex '/proc/[0-9]+' -user ${known.user}`)
  if (left.trim() !== '') throw new Error(`Something of it runs on: ${left}`)
  place.say('the steps of the Dockerfile, its command, its health check and its stop')
}
