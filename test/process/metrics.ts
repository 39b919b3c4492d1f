/** metrics - what is counted is what the page says, read as a monitor would. */
import t from 'tap'
import { makeMetrics } from '../../src/process/metrics.ts'

/** Values of a page by name and labels. */
function valuesOf(page: string): Map<string, number> {
  const lines = page.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return new Map(
    lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]),
  )
}

t.test('page shows what was counted, as counters', async (t) => {
  const metrics = makeMetrics()
  metrics.accepted(3, 12)
  metrics.accepted(1, 4)
  metrics.replayed()
  metrics.lostCommits(3)
  metrics.refused('rate_limited')
  metrics.refused('rate_limited')
  metrics.refused('domain_not_verified')
  metrics.notTaken('disk')
  metrics.notTaken('disk')
  metrics.attempted({
    result: 'delivered',
    classification: null,
    session: { protocol: 'TLSv1.3', isVerified: false, isNew: true },
  })
  metrics.attempted({ result: 'bounced', classification: 'InvalidRecipient', session: null })
  metrics.committed(2)
  const page = await metrics.format({ queueWaiting: 7, storeUp: 1 })
  const values = valuesOf(page)
  t.equal(values.get('sendwright_accepted_requests_total'), 2)
  t.equal(values.get('sendwright_accepted_recipients_total'), 4)
  t.equal(values.get('sendwright_replayed_requests_total'), 1)
  t.equal(values.get('sendwright_store_lost_commits_total'), 3)
  t.equal(values.get('sendwright_refused_sends_total{code="rate_limited"}'), 2)
  t.equal(values.get('sendwright_sends_not_taken_total{why="disk"}'), 2)
  t.equal(values.get('sendwright_refused_sends_total{code="domain_not_verified"}'), 1)
  t.equal(values.get('sendwright_attempts_total{result="delivered",class=""}'), 1)
  t.equal(values.get('sendwright_attempts_total{result="bounced",class="InvalidRecipient"}'), 1)
  t.equal(values.get('sendwright_sessions_total{tls="TLSv1.3",verified="false"}'), 1)
  t.equal(values.get('sendwright_queue_waiting'), 7)
  t.equal(values.get('sendwright_store_up'), 1)
  const p99 = values.get('sendwright_accept_seconds{quantile="0.99"}') ?? 0
  t.ok(p99 > 0.011 && p99 < 0.013, 'latency in seconds')
  t.ok((values.get('sendwright_commit_seconds{quantile="0.5"}') ?? 0) > 0.0019, 'commits in seconds')
  t.match(page, '# TYPE sendwright_accepted_requests_total counter')
  t.ok(values.has('nodejs_eventloop_lag_seconds'), 'lag of the loop')
  metrics.accepted(1, 1)
  const again = valuesOf(await metrics.format({ queueWaiting: 0, storeUp: 0 }))
  t.equal(again.get('sendwright_accepted_requests_total'), 3, 'counted once, not once a page')
  t.equal(again.get('sendwright_store_up'), 0)
})

t.test('figures for the log are those since the last call', (t) => {
  const metrics = makeMetrics()
  metrics.accepted(2, 1)
  metrics.attempted({ result: 'bounced', classification: 'Uncategorized' })
  t.match(metrics.take(), { acceptedRequests: 1, acceptedRecipients: 2, attempts: 1, refusedSends: 0 })
  metrics.refused('cap_reached')
  t.match(metrics.take(), { acceptedRequests: 0, acceptedRecipients: 0, attempts: 0, refusedSends: 1 })
  t.end()
})
