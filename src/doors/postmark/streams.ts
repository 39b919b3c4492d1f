/**
 * streams - streams by their name, in any case, and /message-streams
 *
 * Our streams have a single name, which clients read as ID and as Name. `outbound` is the default stream.
 */

import type { Stream } from '../../../schemas/stream.ts'
import type { EdgeRequest } from '../../http/request.ts'
import type { Answer } from '../../http/respond.ts'
import { numberOfId, streamNameOf } from '../../views/format/bounce.ts'
import type { ServerKey } from '../../views/key.ts'
import type { DoorHandler } from '../common/door-table.ts'
import { readFields } from '../common/fields.ts'
import { answerWith, isAccepted, type OwnApi, refuseFields } from '../common/own-api.ts'
import { pageFrom, readOwnPages } from '../common/pages.ts'
import { decodeParam } from '../common/path-address.ts'
import { CODES, refuseAs } from './errors.ts'
import { readParameters } from './query.ts'

const DEFAULT_NAME = 'outbound'
const PAGE_SIZE = 100
/** Pages of streams that one request reads. */
const PAGES_MAX = 20
const KINDS: Readonly<Record<string, Stream['kind']>> = {
  transactional: 'transactional',
  broadcasts: 'broadcast',
  inbound: 'inbound',
}
const TYPES = { transactional: 'Transactional', broadcast: 'Broadcasts', inbound: 'Inbound' } as const
const NEW_FIELDS = new Set(['ID', 'Name', 'MessageStreamType', 'Description', 'SubscriptionManagementConfiguration'])

/** A stream, or the answer that refuses it. */
export type FoundStream = Stream | { readonly answer: Answer; readonly isMissing: boolean }

/** Reads the streams of the key's server. */
export async function listAll(
  request: EdgeRequest,
  own: OwnApi,
): Promise<readonly Stream[] | { readonly answer: Answer }> {
  const read = async (after: string | null) => {
    const query = { limit: String(PAGE_SIZE), ...(after !== null && { after }) }
    return pageFrom<Stream>(await own.call('listStreams', request, { query }), 'streams')
  }
  const seen = await readOwnPages(read, { pagesMax: PAGES_MAX })
  return 'answer' in seen ? seen : seen.items
}

/** Finds a stream by its name or id. Takes the name, in any case. */
export async function findStream(request: EdgeRequest, own: OwnApi, name: string): Promise<FoundStream> {
  const streams = await listAll(request, own)
  if ('answer' in streams) return { ...streams, isMissing: false }
  const found = findIn(streams, name)
  if (found !== undefined) return found
  const answer = refuseAs(404, CODES.unknownStreamId, "The message stream for the provided 'ID' was not found.")
  return { answer, isMissing: true }
}

/** Finds a stream among those of the server by its name or id, in any case. */
export function findIn(streams: readonly Stream[], name: string): Stream | undefined {
  const sought = name.toLowerCase()
  return streams.find((one) => streamNameOf(one).toLowerCase() === sought || one.streamId === sought)
}

/** Names of streams by id. */
export async function streamNames(
  request: EdgeRequest,
  own: OwnApi,
): Promise<ReadonlyMap<string, string> | { readonly answer: Answer }> {
  const streams = await listAll(request, own)
  return 'answer' in streams ? streams : new Map(streams.map((one) => [one.streamId, streamNameOf(one)]))
}

/** GET /message-streams */
export const postmarkListStreams: DoorHandler = async (request, own) => {
  const { parameters, issues } = readParameters(request, ['messagestreamtype', 'includearchivedstreams'])
  if (issues.length > 0) return refuseFields(issues)
  const { messagestreamtype: type = 'all', includearchivedstreams: archived = 'false' } = parameters
  const kind = KINDS[type.toLowerCase()]
  if (kind === undefined && type.toLowerCase() !== 'all')
    return refuseFields([{ path: 'messagestreamtype', message: 'Must be All, Transactional, Broadcasts or Inbound' }])
  const streams = await listAll(request, own)
  if ('answer' in streams) return streams.answer
  const MessageStreams = streams
    .filter((one) => kind === undefined || one.kind === kind)
    .filter((one) => archived.toLowerCase() === 'true' || one.archivedAt === null)
    .map((one) => shown(request, one))
  return { status: 200, json: { MessageStreams, TotalCount: MessageStreams.length } }
}

/** GET /message-streams/{id} */
export const postmarkReadStream: DoorHandler = async (request, own) => {
  const found = await findStream(request, own, decodeParam(request, 'id'))
  return 'answer' in found ? found.answer : { status: 200, json: shown(request, found) }
}

/** POST /message-streams */
export const postmarkAddStream: DoorHandler = async (request, own) => {
  const { fields, issues } = readFields(request.body, NEW_FIELDS)
  const { ID, MessageStreamType: type, Description = '', SubscriptionManagementConfiguration: handling } = fields
  const kind = typeof type === 'string' ? KINDS[type.toLowerCase()] : undefined
  if (kind === undefined) issues.push({ path: 'MessageStreamType', message: 'Must be Transactional or Broadcasts' })
  if (typeof ID !== 'string' || ID.toLowerCase() === DEFAULT_NAME)
    issues.push({ path: 'ID', message: `Must be a name other than ${DEFAULT_NAME}` })
  if (Description !== '') issues.push({ path: 'Description', message: 'Streams have no description: leave it out' })
  if (kind !== undefined && handling !== undefined && !isOurs(handling, kind))
    issues.push({
      path: 'SubscriptionManagementConfiguration',
      message: 'Unsubscribes are handled on broadcast streams only: leave it out',
    })
  if (issues.length > 0) return refuseFields(issues)
  const asked = { body: { kind, name: ID }, rename: () => 'ID' }
  return answerWith<Stream>(await own.call('createStream', request, asked), (made) => ({ json: shown(request, made) }))
}

/** POST /message-streams/{id}/archive */
export const postmarkArchiveStream: DoorHandler = async (request, own) => {
  const found = await findStream(request, own, decodeParam(request, 'id'))
  if ('answer' in found) return found.answer
  const answer = await own.call('archiveStream', request, { params: { id: found.streamId } })
  if (!isAccepted(answer)) return answer
  return { status: 200, json: { ID: streamNameOf(found), ServerID: serverNumber(request), ExpectedPurgeDate: null } }
}

/** The number by which clients know the key's server. */
export function serverNumber({ key }: Pick<EdgeRequest, 'key'>): number {
  return numberOfId((key as ServerKey).serverId)
}

function isOurs(handling: unknown, kind: Stream['kind']): boolean {
  const { UnsubscribeHandlingType: type } = handling as { UnsubscribeHandlingType?: unknown }
  return type === handlingOf(kind)
}

function handlingOf(kind: Stream['kind']): string {
  return kind === 'broadcast' ? 'Postmark' : 'None'
}

function shown(request: EdgeRequest, stream: Stream): object {
  const { kind, createdAt, archivedAt } = stream
  return {
    ID: streamNameOf(stream),
    ServerID: serverNumber(request),
    Name: streamNameOf(stream),
    Description: '',
    MessageStreamType: TYPES[kind],
    CreatedAt: createdAt,
    UpdatedAt: null,
    ArchivedAt: archivedAt,
    ExpectedPurgeDate: null,
    SubscriptionManagementConfiguration: { UnsubscribeHandlingType: handlingOf(kind) },
  }
}
