/**
 * stream - `sendwright stream list|show|create|update|archive` by a server's key, `pause|resume|pace` by the operator.
 */
import { type Command, Option } from 'commander'
import type { Stream } from '../../schemas/stream.ts'
import { makeClient, readAll } from './console/client.ts'
import { orNull, parseIntegerOrNone, withNote, withServerOptions } from './console/options.ts'
import { type Ended, formatFields, print } from './console/print.ts'
import { formatTable } from './console/table.ts'

const PATH = '/v1/streams'
const OPERATOR_PATH = '/v1/operator/streams'
const KINDS = ['transactional', 'broadcast', 'inbound'] as const

/** Adds the commands. `ended` is called with the exit code of the command that ran. */
export function addStreamCommands(program: Command, ended: Ended): void {
  const stream = program.command('stream').description('streams of a server')
  withServerOptions(stream.command('list'))
    .description('list the streams of the server, newest first')
    .action(async (options) => {
      const streams = await readAll<Stream>(makeClient(options, 'server'), PATH, 'streams')
      ended(print(options, { streams }, () => formatStreams(streams)))
    })
  withServerOptions(stream.command('show <streamId>'))
    .description('print one stream')
    .action(async (id, options) =>
      ended(print(options, await makeClient(options, 'server').get<Stream>(at(id)), formatFields)),
    )
  withServerOptions(stream.command('create <name>'))
    .description('create a stream and print its id')
    .addOption(new Option('--kind <kind>', 'what goes over it').choices(KINDS).default('transactional'))
    .action(async (name, { kind, ...options }) => {
      const made = await makeClient(options, 'server').post<Stream>(PATH, { name, kind })
      ended(print(options, made, ({ streamId }) => streamId))
    })
  withServerOptions(stream.command('update <streamId>'))
    .description('rename a stream or change how long its content is kept')
    .option('--name <name>', 'its new name')
    .option(
      '--retention <days>',
      'days for which an inbound stream keeps content; none: the default of the service',
      parseIntegerOrNone,
    )
    .action(async (id, { name, retention, ...options }) => {
      const changed = await makeClient(options, 'server').patch<Stream>(at(id), {
        name,
        contentRetentionDays: orNull(retention),
      })
      ended(print(options, changed, formatFields))
    })
  withServerOptions(stream.command('archive <streamId>'))
    .description('archive a stream: new messages on it are refused')
    .action(async (id, options) => {
      const archived = await makeClient(options, 'server').post<Stream>(`${at(id)}/archive`)
      ended(print(options, archived, ({ name, archivedAt }) => `${name} is archived since ${archivedAt}`))
    })
  addOperatorCommands(stream, ended)
}

function addOperatorCommands(stream: Command, ended: Ended): void {
  for (const [act, does] of [
    ['pause', 'stop a stream, by the operator'],
    ['resume', 'resume a stream, by the operator'],
  ] as const)
    withNote(stream.command(`${act} <streamId>`))
      .description(does)
      .action(async (id, { note, ...options }) => {
        const client = makeClient(options, 'operator')
        const answer = await client.post<Stream>(`${at(id, OPERATOR_PATH)}/${act}`, { note })
        ended(print(options, answer, ({ name, pausedAt }) => `${name} is ${pausedAt === null ? 'active' : 'paused'}`))
      })
  withNote(stream.command('pace <streamId> <messages>'))
    .description('messages a minute that broadcasts of a stream release (none: the default), by the operator')
    .action(async (id, messages, { note, ...options }) => {
      const pacePerMinute = orNull(parseIntegerOrNone(messages))
      const client = makeClient(options, 'operator')
      const answer = await client.patch<Stream>(at(id, OPERATOR_PATH), { pacePerMinute, note })
      ended(
        print(options, answer, ({ name }) => `${name} releases ${pacePerMinute ?? 'the default of'} messages a minute`),
      )
    })
}

function at(id: string, path: string = PATH): string {
  return `${path}/${encodeURIComponent(id)}`
}

function formatStreams(streams: readonly Stream[]): string {
  return formatTable(
    ['name', 'kind', 'state', 'created', 'id'],
    streams.map(({ name, kind, isDefault, archivedAt, pausedAt, createdAt, streamId }) => [
      isDefault ? `${name} (default)` : name,
      kind,
      archivedAt !== null ? 'archived' : pausedAt !== null ? 'paused' : 'active',
      createdAt,
      streamId,
    ]),
  )
}
