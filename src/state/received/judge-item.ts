/**
 * judge-item - the name of a received message in the lane in which it is judged again:
 * `<server short>.<segment>.<message short>.<round>.<first round ms, base 36>`.
 *
 * Each account has its own lane, as in parsing. The first round is part of parsing and has no item.
 */

import type { Due } from '../../../cluster/behaviour.ts'
import { formatParseItem, type ReceivedPlace, readParseItem } from './parse-item.ts'

/** Family of the lanes. */
export const JUDGE_LANE = 'judge'

const BASE = 36

/** A round to come. */
export interface JudgeRound {
  readonly place: ReceivedPlace
  /** From 2 on. */
  readonly round: number
  readonly firstAtMs: number
  readonly atMs: number
}

/** The round as an item. */
export function judgeDue(accountId: string, { place, round, firstAtMs, atMs }: JudgeRound): Due {
  const item = `${formatParseItem(place)}.${round}.${firstAtMs.toString(BASE)}`
  return { lane: `${JUDGE_LANE}/${accountId}`, item, atMs }
}

/** The account of a lane. */
export function accountOfJudgeLane(lane: string): string {
  return lane.slice(JUDGE_LANE.length + 1)
}

/** Reads an item that `judgeDue` made. */
export function readJudgeItem(item: string): Omit<JudgeRound, 'atMs'> {
  const [round = '', firstAt = ''] = item.split('.').slice(3)
  return { place: readParseItem(item), round: Number(round), firstAtMs: Number.parseInt(firstAt, BASE) }
}
