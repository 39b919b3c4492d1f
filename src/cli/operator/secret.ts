/** secret - `sendwright secret rotate|show`: changes SECRET_KEY and the keys that seal, and follows that to its end. */
import { setTimeout as pause } from 'node:timers/promises'
import type { Command } from 'commander'
import type { Rotation, Secret } from '../../../schemas/operator/secret.ts'
import { type ClientOptions, makeClient } from '../console/client.ts'
import { CommandFailure } from '../console/failure.ts'
import { withNote, withOperatorOptions } from '../console/options.ts'
import { type Ended, formatFields, print } from '../console/print.ts'

const PATH = '/v1/operator/secret'
const LOOK_MS = 2_000
/** A day. The rotation continues without the command. */
const LOOKS_MAX = 43_200
const PERCENT = 100

/** Backups are not changed by a rotation. */
const BACKUPS = `Backups from before this rotation need the former secret: a backup of DATA_DIR has it in
secret-key, for others keep the former SECRET_KEY as long as you keep them. A person with the former
secret and a copy of the store can still read that copy.`
const VARIABLES = 'If SECRET_KEY_PREVIOUS is set, remove it from the settings of every process.'

interface RotateOptions extends ClientOptions {
  note?: string
  wait: boolean
}

/** Adds the commands. `ended` is called with the exit code of the command that ran. */
export function addSecretCommands(program: Command, ended: Ended): void {
  const secret = program.command('secret').description('the secret of the installation')
  withNote(secret.command('rotate'))
    .description(
      'change the secret and the key that encrypts stored content, and encrypt all keys again. If the secret is in the file secret-key of DATA_DIR, a new one is generated; otherwise set SECRET_KEY to the new one and SECRET_KEY_PREVIOUS to the present one in every process first. Mail is accepted and delivered throughout',
    )
    .option('--no-wait', 'do not wait for the end')
    .action(async (options: RotateOptions) => ended(await rotate(options)))
  withOperatorOptions(secret.command('show'))
    .description('show the latest rotation of the secret')
    .action(async (options: ClientOptions) => {
      const seen = await makeClient(options, 'operator').get<Secret>(PATH)
      ended(print(options, seen, ({ rotation }) => (rotation === null ? NEVER : formatFields(rotation))))
    })
}

const NEVER = 'The secret was never rotated'

async function rotate({ note, wait, ...options }: RotateOptions): Promise<number> {
  const client = makeClient(options, 'operator')
  const begun = await client.post<Rotation>(`${PATH}/rotate`, { note })
  if (!wait) return print(options, begun, formatFields)
  let told = ''
  for (let looks = 0; looks < LOOKS_MAX; looks += 1) {
    await pause(LOOK_MS)
    const { rotation } = await client.get<Secret>(PATH).catch(() => ({ rotation: null }))
    if (rotation?.phase === 'done')
      return print(options, rotation, (done) => [formatFields(done), BACKUPS, VARIABLES].join('\n\n'))
    const now = rotation === null ? 'The service does not answer' : lineOf(rotation)
    if (options.json !== true && now !== told) process.stderr.write(`${now}\n`)
    told = now
  }
  throw new CommandFailure('The rotation is not done yet and continues: sendwright secret show')
}

function lineOf({ phase, progress, resealed, waitsFor }: Rotation): string {
  const share = phase === 'walking' ? ` ${Math.floor(progress * PERCENT)} %, ${resealed} sealed again` : ''
  return `${phase}${share}${waitsFor === null ? '' : `: ${waitsFor}`}`
}
