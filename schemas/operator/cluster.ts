/**
 * cluster - the operator's view of the shards, of the processes that own them, and of the entities on them
 *
 * Spec operator.shards, operator.entity
 */

import type { FromSchema } from 'json-schema-to-ts'

import { INSTANT_OR_NULL, INTEGER_OR_NULL, TEXT_OR_NULL, UUID } from '../shape.ts'

const COUNT = { type: 'integer', minimum: 0 } as const

/** One Redis of a cluster. */
const REDIS_NODE = {
  type: 'object',
  properties: {
    /** `host:port`. */
    name: { type: 'string' },
    role: { enum: ['primary', 'replica'] },
    /** For a replica, the primary that it follows. */
    primary: TEXT_OR_NULL,
    isUp: { type: 'boolean' },
    version: TEXT_OR_NULL,
    /** For a primary, its shards. */
    shards: { type: 'array', items: COUNT },
    /** For a primary, the replicas that follow it without a gap. */
    replicasInStep: COUNT,
    /** For a replica: whether it is in sync, and how many bytes it is behind. */
    isInStep: { type: 'boolean' },
    behindBytes: INTEGER_OR_NULL,
    usedBytes: INTEGER_OR_NULL,
    /** 0 if it has no bound. */
    bytesMax: INTEGER_OR_NULL,
    /** Its clock less that of the process that answers. */
    clockOffMs: INTEGER_OR_NULL,
    commandsPerSecond: INTEGER_OR_NULL,
  },
  required: [
    'name',
    'role',
    'primary',
    'isUp',
    'version',
    'shards',
    'replicasInStep',
    'isInStep',
    'behindBytes',
    'usedBytes',
    'bytesMax',
    'clockOffMs',
    'commandsPerSecond',
  ],
  additionalProperties: false,
} as const

/** Answer of GET /v1/operator/shards. */
export const SHARD_LIST = {
  type: 'object',
  properties: {
    workers: {
      type: 'array',
      items: {
        type: 'object',
        properties: {
          worker: { type: 'string' },
          host: { type: 'string' },
          pid: { type: 'integer' },
          roles: { type: 'array', items: { type: 'string' } },
          isAlive: { type: 'boolean' },
          takesShards: { type: 'boolean' },
          isLeaving: { type: 'boolean' },
          shards: COUNT,
        },
        required: ['worker', 'host', 'pid', 'roles', 'isAlive', 'takesShards', 'isLeaving', 'shards'],
        additionalProperties: false,
      },
    },
    shards: {
      type: 'array',
      items: {
        type: 'object',
        properties: {
          shard: COUNT,
          /**
           * `moving`: being moved to another Redis of a cluster. `away` means that its Redis does not answer, and its
           * state is unknown.
           */
          state: { enum: ['owned', 'free', 'torn', 'moving', 'away'] },
          owner: TEXT_OR_NULL,
          since: INSTANT_OR_NULL,
          tries: COUNT,
          seq: COUNT,
          journalSeq: INTEGER_OR_NULL,
          waiting: COUNT,
          oldestWaitingAt: INSTANT_OR_NULL,
          dueAt: INSTANT_OR_NULL,
        },
        required: [
          'shard',
          'state',
          'owner',
          'since',
          'tries',
          'seq',
          'journalSeq',
          'waiting',
          'oldestWaitingAt',
          'dueAt',
        ],
        additionalProperties: false,
      },
    },
    /** Every Redis of a cluster, primaries first; empty for a single Redis. */
    redis: { type: 'array', items: REDIS_NODE },
  },
  required: ['workers', 'shards', 'redis'],
  additionalProperties: false,
} as const

/** Answer of GET /v1/operator/entities/{kind}/{id}, with its last states, newest first. */
export const ENTITY = {
  type: 'object',
  properties: {
    kind: { type: 'string' },
    id: UUID,
    shard: COUNT,
    /** The reads of Redis behind it, as commands of redis-cli. */
    reads: { type: 'array', items: { type: 'string' } },
    states: {
      type: 'array',
      items: {
        type: 'object',
        properties: {
          entry: { type: 'string' },
          command: { type: 'string' },
          version: { type: 'integer' },
          events: { type: 'array' },
          state: { type: ['object', 'null'] },
        },
        required: ['entry', 'command', 'version', 'events', 'state'],
        additionalProperties: false,
      },
    },
  },
  required: ['kind', 'id', 'shard', 'reads', 'states'],
  additionalProperties: false,
} as const

export type RedisNodeRow = FromSchema<typeof REDIS_NODE>

export type ShardList = FromSchema<typeof SHARD_LIST>

export type Entity = FromSchema<typeof ENTITY>
