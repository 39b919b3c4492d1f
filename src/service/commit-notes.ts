/**
 * commit-notes - notes of commits for the operator, with a line for each final state of a recipient and of a
 * broadcast, and the figures of broadcasts
 */

import type { Note } from '../../cluster/behaviour.ts'
import type { Outbound } from '../outbound/open.ts'
import { parseDestination } from '../outbound/perform.ts'
import type { Metrics } from '../process/metrics.ts'
import type { EndedRecipient, Records } from '../process/records.ts'
import { isBroadcastNote } from '../state/broadcast/note.ts'
import type { RecipientEnd } from '../state/message/end.ts'

/** Makes the receiver of the notes of commits, once they are confirmed. */
export function makeOnCommitNote(of: {
  readonly records: Records
  readonly metrics: Pick<Metrics, 'broadcast'>
  readonly outbound: Pick<Outbound, 'sites'>
}): (note: Note) => void {
  const { records, metrics, outbound } = of
  return (note) => {
    if (!isBroadcastNote(note)) {
      records.ended(endedOf(note as RecipientEnd, outbound))
      return
    }
    const { broadcastId, released, failed, ended } = note
    metrics.broadcast({ released, failed })
    if (ended !== null) records.broadcastEnded({ broadcastId, ...ended })
  }
}

/** How a recipient ended, with the site that its lane leads to as far as this process knows it. */
function endedOf({ lane, ...end }: RecipientEnd, { sites }: Pick<Outbound, 'sites'>): EndedRecipient {
  if (lane === null) return { ...end, site: null }
  const destination = parseDestination(lane)
  return { ...end, site: sites.siteOf(destination) ?? destination }
}
