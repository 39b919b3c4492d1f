/** smtp-sink - Postfix's own test server, if it is installed: it accepts mail and discards it. */

import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { connect } from 'node:net'
import { delimiter, join } from 'node:path'
import { freePort } from '../machine/port.ts'
import { until } from '../machine/until.ts'

/** Distributions install it outside of the PATH of a plain user. */
const FOLDERS = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin']
const PROGRAM = FOLDERS.map((folder) => join(folder, 'smtp-sink')).find((path) => existsSync(path)) ?? null

/** False, or why a test that needs it is skipped. */
export const SMTP_SINK_SKIP: false | string = PROGRAM === null ? 'smtp-sink of Postfix is not installed' : false

/** Starts a sink on the loopback, or on all of its addresses with `0.0.0.0`. */
export async function startSmtpSink(host = '127.0.0.1'): Promise<{ port: number; close(): Promise<void> }> {
  if (PROGRAM === null) throw new Error('No smtp-sink: ask SMTP_SINK_SKIP first')
  const port = await freePort()
  // As root it insists on giving up its rights to a named user.
  const user = process.getuid?.() === 0 ? ['-u', 'nobody'] : []
  const child = spawn(PROGRAM, [...user, '-c', `${host}:${port}`, '256'], { stdio: 'ignore', env: {} })
  const ended = new Promise((resolve) => child.once('exit', resolve))
  await until(() => canConnect(port), 5000)
  return {
    port,
    close: async () => {
      child.kill()
      await ended
    },
  }
}

function canConnect(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port })
    socket.once('error', () => resolve(false))
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
  })
}
