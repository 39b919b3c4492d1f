/** fault - a bug or a broken promise, as opposed to a refusal (an answer) or a failure (an outcome of the world). */

/** Facts beside the sentence: ids, numbers and names, never personal data. */
export type FaultFacts = Readonly<Record<string, string | number | boolean | null>>

export class Fault extends Error {
  readonly facts: FaultFacts

  constructor(sentence: string, facts: FaultFacts = {}) {
    super(sentence)
    this.name = 'Fault'
    this.facts = facts
  }
}

/** Throws a Fault with `sentence` and `facts` unless `condition` holds. */
export function assert(condition: boolean, sentence: string, facts: FaultFacts = {}): asserts condition {
  if (!condition) throw new Fault(sentence, facts)
}
