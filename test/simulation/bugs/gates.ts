/** gates - a gate of a primary that errs */
import { ReplicaGate, type Waiting } from '../../../cluster/slots/gate.ts'

/** After the end of a connection it asks on the next one for callers that wait for the next pair. */
export class RidingGate extends ReplicaGate {
  protected override fail(asked: readonly Waiting[]): void {
    for (const { resolve } of asked) resolve(false)
  }
}
