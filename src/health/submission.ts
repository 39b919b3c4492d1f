/**
 * submission - whether applications can hand their mail over by SMTP: each of the two listeners answers, and under TLS
 *
 * Spec operator.health
 */

import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import type { Finding } from '../../schemas/operator/health.ts'
import type { Config } from '../process/config.ts'
import { failed, warning, well } from './finding.ts'

const STEP_MS_MAX = 3000
const EVERYWHERE: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' }
const START =
  'Start a process with ROLES=submission (npm run cluster -- submission=1), or set SMTP_HOST to where it listens'

/** Takes the settings; reads the roles of the living processes. */
export async function examineSubmission(
  { smtpHost, submissionPort, submissionTlsPort }: Pick<Config, 'smtpHost' | 'submissionPort' | 'submissionTlsPort'>,
  livingRoles: () => Promise<ReadonlySet<string>>,
): Promise<Finding> {
  const ports = [submissionPort, submissionTlsPort].filter((port) => port !== 0)
  if (ports.length === 0) return well('submission', 'Mail is not taken over SMTP: both ports are 0')
  if (!(await livingRoles()).has('submission')) return warning('submission', 'No process takes mail over SMTP', START)
  const host = EVERYWHERE[smtpHost] ?? smtpHost
  for (const port of ports) {
    const wrong = await probe(host, port, port === submissionTlsPort)
    if (wrong !== null) return failed('submission', `${host}:${port}: ${wrong}`, START)
  }
  return well('submission', `Mail is taken over SMTP on ${ports.map((port) => `${host}:${port}`).join(' and ')}`)
}

/** Connects like a client, encrypts, and sends QUIT. Returns the fault, or null. */
async function probe(host: string, port: number, isImplicitTls: boolean): Promise<string | null> {
  const socket = connect({ host, port })
  socket.on('error', () => undefined)
  try {
    await heard(socket, 'connect')
    if (!isImplicitTls) {
      await expect(socket, '220')
      socket.write('EHLO doctor\r\n')
      await expect(socket, '250')
      socket.write('STARTTLS\r\n')
      await expect(socket, '220')
    }
    const secure = connectTls({ socket, rejectUnauthorized: false })
    secure.on('error', () => undefined)
    await heard(secure, 'secureConnect')
    if (isImplicitTls) await expect(secure, '220')
    secure.end('QUIT\r\n')
    return null
  } catch (error) {
    return (error as Error).name === 'AbortError' ? 'no answer' : (error as Error).message
  } finally {
    socket.destroySoon()
  }
}

async function expect(socket: Socket | TLSSocket, code: string): Promise<void> {
  const reply = String((await heard(socket, 'data'))[0])
  if (!reply.startsWith(code)) throw new Error(reply.split('\r\n')[0]?.slice(0, 200))
}

function heard(socket: Socket | TLSSocket, event: string): Promise<unknown[]> {
  return once(socket, event, { signal: AbortSignal.timeout(STEP_MS_MAX) })
}
