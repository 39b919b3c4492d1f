/** outcome-tiles - the outcomes of a broadcast: counted in steps, each figure leads to its messages */
import { useEffect, useState } from 'preact/hooks'
import { Link } from 'wouter-preact'
import type { Broadcast } from '../../../../../schemas/broadcast.ts'
import type { Outcomes } from '../../../../../schemas/counts/outcomes.ts'
import { ApiError, call } from '../../api/call.ts'
import { messagesPath, serverApi } from '../../api/place.ts'
import { formatNumber, formatShare, formatStatus } from '../../api/words.ts'
import { Button } from '../../parts/button.tsx'
import { Card, Fault, Skeleton } from '../../parts/card.tsx'
import type { Tone } from '../../parts/chip.tsx'

/** Steps that are counted without being asked to: of some thousand messages each. */
const STEPS_MAX = 4

interface Counted {
  readonly pages: readonly Outcomes[]
  readonly error: ApiError | null
}

/** The card. It is counted again whenever more messages were released. */
export function BroadcastOutcomes({ serverId, broadcast }: { serverId: string; broadcast: Broadcast }) {
  const { broadcastId, submittedAt, released, completedAt } = broadcast
  const [turn, setTurn] = useState(0)
  const [{ pages, error }, setCounted] = useState<Counted>({ pages: [], error: null })
  const [isCounting, setCounting] = useState(false)
  const count = async (from: readonly Outcomes[], signal?: AbortSignal) => {
    setCounting(true)
    const found = [...from]
    try {
      for (let steps = 0; steps < STEPS_MAX; steps += 1) {
        const after = found.at(-1)?.next
        const body = { broadcastId, submittedFrom: submittedAt, ...(after != null && { after }) }
        const path = serverApi(serverId, '/messages/outcomes')
        found.push(await call<Outcomes>('POST', path, { body, ...(signal !== undefined && { signal }) }))
        if (found.at(-1)?.next === null) break
      }
      setCounted({ pages: found, error: null })
    } catch (fault) {
      if (signal?.aborted) return
      if (!(fault instanceof ApiError)) throw fault
      setCounted({ pages: found, error: fault })
    } finally {
      setCounting(false)
    }
  }
  useEffect(() => {
    const gone = new AbortController()
    void count([], gone.signal)
    return () => gone.abort()
  }, [broadcastId, released, completedAt, turn])
  const isPart = pages.at(-1)?.next != null
  return (
    <Card
      title="Outcomes"
      side={
        <Button icon="refresh" disabled={isCounting} onPress={() => setTurn((n) => n + 1)}>
          Refresh
        </Button>
      }
    >
      {error !== null && <Fault error={error} onRetry={() => void count(pages)} />}
      {pages.length === 0 ? (
        error === null && <Skeleton lines={3} />
      ) : (
        <Tiles pages={pages} serverId={serverId} broadcastId={broadcastId} />
      )}
      {isPart && (
        <footer class="more">
          <p>The newest messages only. {formatNumber(released)} were released.</p>
          <Button disabled={isCounting} onPress={() => count(pages)}>
            Count more
          </Button>
        </footer>
      )}
    </Card>
  )
}

interface TilesProps {
  readonly pages: readonly Outcomes[]
  readonly serverId: string
  readonly broadcastId: string
}

function Tiles({ pages, serverId, broadcastId }: TilesProps) {
  const sum = (of: (page: Outcomes) => number) => pages.reduce((all, page) => all + of(page), 0)
  const ended = sum(({ recipients: { delivered, bounced } }) => delivered + bounced)
  const delivered = sum(({ recipients }) => recipients.delivered)
  const tiles: readonly (readonly [word: string, tone: Tone, filters: object, count: number, of: number])[] = [
    ['Delivered', 'delivered', { status: 'delivered' }, delivered, ended],
    ['Bounced', 'bounced', { status: 'bounced' }, sum(({ recipients }) => recipients.bounced), ended],
    ['Deferred', 'deferred', { status: 'deferred' }, sum(({ recipients }) => recipients.deferred), 0],
    ['Waiting', 'accepted', { status: 'accepted' }, sum(({ recipients }) => recipients.accepted), 0],
    ['Complaints', 'spam_complaint', { event: 'spam_complaint' }, sum(({ complained }) => complained), delivered],
    ['Unsubscribed', 'quiet', { event: 'unsubscribed' }, sum(({ unsubscribed }) => unsubscribed), delivered],
  ]
  const classes = new Map<string, number>()
  for (const { classifications } of pages)
    for (const [name, count] of Object.entries(classifications)) classes.set(name, (classes.get(name) ?? 0) + count)
  return (
    <>
      <dl class="figures inset">
        {tiles.map(([word, tone, filters, count, of]) => (
          <div class={`card ${tone}`} key={word}>
            <dt>
              <Link href={messagesPath(serverId, { broadcastId, ...filters })} class="row-link">
                {word}
              </Link>
            </dt>
            <dd class="num">{formatNumber(count)}</dd>
            <dd class="than">{of === 0 ? ' ' : formatShare(count / of)}</dd>
          </div>
        ))}
      </dl>
      {classes.size > 0 && (
        <p class="note">
          Bounces by reason:{' '}
          {[...classes]
            .sort(([, one], [, other]) => other - one)
            .map(([name, count]) => (
              <span key={name} class="reason">
                <Link href={messagesPath(serverId, { broadcastId, classification: name })}>
                  {formatStatus(name)} {formatNumber(count)}
                </Link>
              </span>
            ))}
        </p>
      )}
    </>
  )
}
