/**
 * bugs - mistakes that a runtime like this one could contain. Each is planted alone.
 *
 * The product contains none of them: they are subclasses of its classes, wrappers of the store and variants of the toy
 * behaviours. The simulation must detect every one.
 */

import { makeFenceCells } from '../../../cluster/fence.ts'
import { CLAIM_RULES } from '../../../cluster/items/claim.ts'
import { toldKey } from '../../../cluster/keyspace.ts'
import { Shard } from '../../../cluster/shard/shard.ts'
import type { Bug } from '../simulation.ts'
import {
  BareLoop,
  BelievingLoop,
  EagerLoop,
  ForgetfulLoop,
  ForgivingFence,
  HashLoop,
  HastyLoop,
  HopefulFence,
  ImpatientLoop,
  SilentLoop,
  StaleLoop,
  StubbornLoop,
  UnawareFence,
  WishfulLoop,
} from './loops.ts'
import { DeafClient, HastyClient, HumbleClient, TokenlessClient, TrustfulClient, UnfencedClient } from './orders.ts'
import {
  withCursorOutside,
  withEmptyReads,
  withHastyClocks,
  withHastyHandIns,
  withIncrements,
  withLostReplies,
  withLoudCommits,
  withMixedReplies,
  withOutcomesCursorOutside,
  withOutcomesLate,
  withoutDoubt,
  withoutLowerBounds,
  withoutMeeting,
  withoutSeqCheck,
  withoutTokenCheck,
  withSecretLooks,
} from './stores.ts'

/** They show on two primaries between which shards move. */
const MISTAKEN_ORDERS: readonly Bug[] = [
  {
    name: 'a shard that is copied while its owner writes',
    seed: 8,
    seenAs: /from before the fence/,
    orders: { makeClient: (options) => new UnfencedClient(options) },
  },
  {
    name: 'a fence under the token of the owner before',
    seed: 2,
    seenAs: /from before the fence|not what was fenced/,
    orders: { makeClient: (options) => new TokenlessClient(options) },
  },
  {
    name: 'a fence that no replica of the source has',
    seed: 2,
    seenAs: /from before the fence|had not been fenced/,
    orders: { makeClient: (options) => new TrustfulClient(options) },
  },
  {
    name: 'a slot that changes hands before a replica of the target has its keys',
    seed: 6,
    seenAs: /not what was fenced|had not been fenced/,
    orders: { makeClient: (options) => new HastyClient(options) },
  },
  {
    name: 'a fence that ends before all know who has the slot',
    seed: 45,
    seenAs: /not what was fenced|had not been fenced|did not rise|in no log|follow/,
    orders: { makeClient: (options) => new DeafClient(options) },
  },
  {
    name: 'a move that goes on with a claim that is no newer than a lost one',
    seed: 174,
    seenAs: /had not been fenced|did not rise|follow|in no log/,
    orders: { makeClient: (options) => new HumbleClient(options) },
  },
  {
    name: 'an order that lets another one go on',
    seed: 100,
    seenAs: /not what was fenced|had not been fenced|did not rise|follow|in no log|Taken twice/,
    orders: { letsOthersBe: true },
  },
]

export const BUGS: readonly Bug[] = [
  { name: 'no seq check', seenAs: /claims to follow/, wrapStore: withoutSeqCheck },
  { name: 'no token check', seenAs: /had lost it/, wrapStore: withoutTokenCheck },
  { name: 'cursor outside the commit', seenAs: /Executed twice/, wrapStore: withCursorOutside },
  {
    name: 'effects before the claim',
    seenAs: /without a claim/,
    makeShard: (id, world) => new Shard(id, world, EagerLoop),
  },
  { name: 'INCR instead of absolute', seenAs: /counted/, wrapStore: withIncrements },
  {
    name: 'overlay off',
    seed: 17,
    seenAs: /one key|same key/,
    makeShard: (id, world) => new Shard(id, world, BareLoop),
  },
  {
    name: 'overlay cleared at OK',
    seed: 17,
    seenAs: /one key|same key/,
    makeShard: (id, world) => new Shard(id, world, ForgetfulLoop),
  },
  {
    name: 'an empty batch answers at once',
    seed: 16,
    seenAs: /in no log|same key/,
    makeShard: (id, world) => new Shard(id, world, HastyLoop),
  },
  {
    name: 'a claim without its guard',
    seenAs: /after its end|twice at once/,
    world: { rules: { ...CLAIM_RULES, stillDue: () => true, flag: [] } },
  },
  {
    name: 'an outcome that comes twice counts twice',
    seenAs: /Counted twice/,
    world: { rules: { ...CLAIM_RULES, isCurrent: (row, attempt) => row.attempt === attempt } },
    wrapStore: (store) => withLostReplies(store),
  },
  {
    name: 'overlay on hashes only',
    seed: 6,
    seenAs: /after its end|twice at once/,
    makeShard: (id, world) => new Shard(id, world, HashLoop),
  },
  {
    name: 'states not restored after a refused commit',
    seenAs: /counted|remembered/,
    makeShard: (id, world) => new Shard(id, world, StubbornLoop),
  },
  {
    name: 'outcomes cursor outside the commit',
    seenAs: /Executed twice|entries in outcomes/,
    wrapStore: withOutcomesCursorOutside,
  },
  { name: 'claims freed before outcomes are read', seenAs: /lay unread/, wrapStore: withOutcomesLate },
  {
    name: 'a reply told before its commit',
    seenAs: /in no log|same key|told/,
    wrapStore: withLoudCommits,
  },
  {
    name: 'a serial lane that waits for nobody',
    seed: 213,
    seenAs: /Two at once/,
    makeShard: (id, world) => new Shard(id, world, ImpatientLoop),
  },
  {
    name: 'a head that is not written to',
    seed: 11,
    seenAs: /after its end|out of order|Two at once/,
    makeShard: (id, world) => new Shard(id, world, StaleLoop),
  },
  {
    name: 'commits that are lost are not told',
    seenAs: /said nothing/,
    makeShard: (id, world) => new Shard(id, world, SilentLoop),
  },
  {
    name: 'a fence that a heartbeat opens again',
    seed: 19,
    seenAs: /Taken twice/,
    makeFence: (nowMs) => new ForgivingFence(makeFenceCells(), nowMs),
    claimsStandMs: 10_000,
  },
  {
    name: 'a fence that waits for no answer',
    seed: 49,
    seenAs: /Taken while/,
    makeFence: (nowMs) => new HopefulFence(makeFenceCells(), nowMs),
  },
  {
    name: 'shards and items that are claimed while heartbeats have lapsed',
    seed: 40_073,
    seenAs: /twice at once/,
    makeFence: (nowMs) => new UnawareFence(makeFenceCells(), nowMs),
  },
  {
    name: 'a worker that is judged by its heartbeats alone',
    seed: 13,
    seenAs: /Kept by/,
    lags: (lags) => lags.filter(({ connection }) => connection === 'commit'),
  },
  { name: 'readiness that asks for shards alone', seenAs: /Ready while/, lags: () => [] },
  {
    name: 'a newcomer that talks to whoever is there',
    seed: 9,
    seenAs: /Strangers/,
    wrapStore: (store) => withoutMeeting(store),
  },
  {
    name: 'a newcomer that looks and does not say that it is coming',
    seed: 13,
    seenAs: /Strangers/,
    wrapStore: (store) => withSecretLooks(store),
  },
  {
    name: 'fields of a refused commit that stay known',
    seed: 5,
    seenAs: /same key|one key|counted|in no log|remembered|twice|after its end|never ended/,
    makeShard: (id, world) => new Shard(id, world, WishfulLoop),
  },
  {
    name: 'a commit without an answer that counts as not done',
    seenAs: /torn|twice|but it was accepted/,
    makeShard: (id, world) => new Shard(id, { ...world, store: withoutDoubt(world.store) }),
  },
  {
    name: 'replies of a parcel that are told in another order',
    seed: 3,
    seenAs: /but it was accepted|same key|in no log/,
    wrapStore: withMixedReplies,
  },
  {
    name: 'a read that failed counts as empty',
    seed: 5,
    seenAs: /never ended|would look at|same key|in no log/,
    makeShard: (id, world) => new Shard(id, { ...world, store: withEmptyReads(world.store) }),
  },
  { name: 'a deadline by a clock that is ahead', seenAs: /but it was accepted/, wrapStore: withHastyClocks },
  { name: 'a bound that an earlier item does not lower', seenAs: /would look at/, wrapStore: withoutLowerBounds },
  {
    name: 'an outcome that is acknowledged before it is stored',
    seenAs: /lay unread|Taken twice/,
    wrapStore: withHastyHandIns,
  },
  { name: 'an address written into a stream', seenAs: /address/, toy: { addressInStream: true } },
  { name: 'a node that is sent elsewhere and stays', seenAs: /Not drained/, cluster: { isDeaf: true } },
  {
    name: 'replies told in a slot of another node',
    seenAs: /Told in a slot/,
    cluster: { toldKey },
  },
  { name: 'answers that wait for no replica', seenAs: /in no log|same key|counted/, cluster: { isUngated: true } },
  { name: 'one clock for all primaries', seenAs: /clock of another/, cluster: { hasOneClock: true } },
  {
    name: 'reads that are believed after a commit in doubt did not happen',
    seed: 292,
    seenAs: /the next owner would look at/,
    makeShard: (id, world) => new Shard(id, world, BelievingLoop),
    cluster: {},
  },
  ...MISTAKEN_ORDERS,
]
