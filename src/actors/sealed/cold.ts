/**
 * cold - the lane of an account in which segments leave Redis and their objects are read and written again.
 *
 * Lane: `cold/<account>`, items as in `src/state/message/sealed.ts`
 */

import type { CommandType, OutcomeBody, PrepareBody } from '../../../cluster/behaviour.ts'
import { readColdItem } from '../../state/message/sealed.ts'
import { type EraseJob, type EraseOutcome, eraseOutcome, prepareErase } from './erase.ts'
import { type ForgetJob, type ForgetOutcome, forgetOutcome, prepareForget } from './forget.ts'
import { makePreparePack, type PackJob, type PackOutcome, packOutcome } from './pack.ts'
import { prepareRecall, type RecallJob, type RecallOutcome, recallOutcome } from './recall.ts'
import { prepareReseal, type ResealJob, type ResealOutcome, resealOutcome } from './reseal.ts'
import { makePrepareSeal, type SealJob, type SealOutcome, sealOutcome } from './seal.ts'
import { prepareStrip, type StripJob, type StripOutcome, stripOutcome } from './strip.ts'
import { prepareTrim, type TrimJob, type TrimOutcome, trimOutcome } from './trim.ts'

export type ColdJob = PackJob | SealJob | TrimJob | RecallJob | EraseJob | ForgetJob | StripJob | ResealJob
export type ColdOutcome =
  | PackOutcome
  | SealOutcome
  | TrimOutcome
  | RecallOutcome
  | EraseOutcome
  | ForgetOutcome
  | StripOutcome
  | ResealOutcome

/** Prepares what an item orders. In: as `makePrepareSeal`. */
export function makePrepareCold(hotDays: number | null): CommandType<PrepareBody, ColdJob | null> {
  const acts = {
    pack: makePreparePack(hotDays),
    seal: makePrepareSeal(hotDays),
    trim: prepareTrim,
    recall: prepareRecall,
    erase: prepareErase,
    forget: prepareForget,
    strip: prepareStrip,
    reseal: prepareReseal,
  } as Readonly<Record<ColdJob['act'], CommandType<PrepareBody, ColdJob | null>>>
  return byAct('prepare cold', ({ item }) => acts[readColdItem(item).act])
}

const OUTCOMES = {
  pack: packOutcome,
  seal: sealOutcome,
  trim: trimOutcome,
  recall: recallOutcome,
  erase: eraseOutcome,
  forget: forgetOutcome,
  strip: stripOutcome,
  reseal: resealOutcome,
} as Readonly<Record<ColdJob['act'], CommandType<OutcomeBody<ColdOutcome>, null>>>

export const coldOutcome = byAct<OutcomeBody<ColdOutcome>, null>('cold outcome', ({ item }) => {
  return OUTCOMES[readColdItem(item).act]
})

/** A command whose item determines the act. */
function byAct<Body, Reply>(name: string, of: (body: Body) => CommandType<Body, Reply>): CommandType<Body, Reply> {
  return {
    name,
    frees: true,
    entities: (body) => of(body).entities(body),
    counters: (body) => of(body).counters(body),
    facts: (body, states, context, known) => of(body).facts(body, states, context, known),
    decide: (body, states, facts, context, command) => of(body).decide(body, states, facts, context, command),
  }
}
