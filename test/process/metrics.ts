/** metrics - what is counted is what the page says, read as a monitor would. */
import t from 'tap'
import { unconnectedRoute } from '../../src/mail/attempt-route.ts'
import { makeMetrics } from '../../src/process/metrics.ts'

const ROUTE = { ...unconnectedRoute('mx.a.test', null, 1), tlsVersion: 'TLSv1.3', transactionMs: 5 }

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
  metrics.attempted(
    {
      result: 'delivered',
      classification: null,
      route: { ...ROUTE, isVerified: false, dane: 'verified' },
    },
    'a',
  )
  metrics.attempted({ result: 'bounced', classification: 'InvalidRecipient', route: null }, 'a')
  const google = { ...ROUTE, host: 'aspmx.l.google.com', isReused: true }
  for (let n = 0; n < 2; n += 1) metrics.attempted({ result: 'delivered', classification: null, route: google }, 'a')
  metrics.attempted({ result: 'delivered', classification: null }, 'a')
  metrics.broadcast({ released: 50, failed: 0 })
  metrics.broadcast({ released: 49, failed: 2 })
  metrics.scheduled('accepted', 3)
  metrics.scheduled('cancelled', 1)
  metrics.committed(2)
  const page = await metrics.format({ waiting: 7, storeUp: 1, webhookBacklogFailing: 2, commits: 5 })
  const values = valuesOf(page)
  t.equal(values.get('sendwright_accepted_requests_total'), 2)
  t.equal(values.get('sendwright_accepted_recipients_total'), 4)
  t.equal(values.get('sendwright_replayed_requests_total'), 1)
  t.equal(values.get('sendwright_store_lost_commits_total'), 3)
  const site = (name: string, result: string, of: string) =>
    values.get(`sendwright_site_attempts_total{site="${name}",result="${result}",class="${of}"}`)
  t.equal(site('other', 'delivered', ''), 1, 'a server of no provider is in one label')
  t.equal(site('none', 'bounced', 'InvalidRecipient'), 1)
  t.equal(site('google', 'delivered', ''), 2)
  t.equal(values.get('sendwright_refused_sends_total{code="rate_limited"}'), 2)
  t.equal(values.get('sendwright_sends_not_taken_total{why="disk"}'), 2)
  t.equal(values.get('sendwright_refused_sends_total{code="domain_not_verified"}'), 1)
  t.equal(values.get('sendwright_attempts_total{result="delivered",class=""}'), 4)
  t.equal(values.get('sendwright_attempts_total{result="bounced",class="InvalidRecipient"}'), 1)
  t.equal(values.get('sendwright_dane_attempts_total{result="verified"}'), 1)
  t.equal(values.get('sendwright_sessions_total{tls="TLSv1.3",verified="false"}'), 1)
  t.equal(values.get('sendwright_broadcast_recipients_total{result="released"}'), 99)
  t.equal(values.get('sendwright_broadcast_recipients_total{result="failed"}'), 2)
  t.equal(values.get('sendwright_scheduled_messages_total{result="accepted"}'), 3)
  t.equal(values.get('sendwright_scheduled_messages_total{result="cancelled"}'), 1)
  t.equal(values.get('sendwright_commands_waiting'), 7)
  t.equal(values.get('sendwright_webhook_backlog{class="failing"}'), 2)
  t.equal(values.get('sendwright_commits_total'), 5)
  t.equal(values.get('sendwright_store_up'), 1)
  const acceptedWithin = (le: string) => values.get(`sendwright_accept_seconds_bucket{le="${le}"}`)
  t.same(['0.0025', '0.005', '0.01', '0.025', '+Inf'].map(acceptedWithin), [0, 1, 1, 2, 2], 'summed up by bound')
  t.equal(values.get('sendwright_accept_seconds_count'), 2)
  t.equal(values.get('sendwright_accept_seconds_sum'), 0.016)
  t.equal(values.get('sendwright_commit_seconds_bucket{le="0.0025"}'), 1)
  t.match(page, '# TYPE sendwright_accepted_requests_total counter')
  t.ok(values.has('nodejs_eventloop_lag_seconds'), 'lag of the loop')
  metrics.accepted(1, 1)
  const again = valuesOf(await metrics.format({ waiting: 0, storeUp: 0, commits: 5 }))
  t.equal(again.get('sendwright_accepted_requests_total'), 3, 'counted once, not once a page')
  t.equal(again.get('sendwright_store_up'), 0)
  t.equal(again.get('sendwright_commits_total'), 5, 'a figure that only grows is told as it is')
})

t.test('figures for the log are those since the last call', (t) => {
  const metrics = makeMetrics()
  metrics.accepted(2, 1)
  metrics.attempted({ result: 'bounced', classification: 'Uncategorized' }, 'a')
  t.match(metrics.take(), { acceptedRequests: 1, acceptedRecipients: 2, attempts: 1, refusedSends: 0 })
  metrics.refused('cap_reached')
  t.match(metrics.take(), { acceptedRequests: 0, acceptedRecipients: 0, attempts: 0, refusedSends: 1 })
  t.end()
})

t.test('requests are counted by template and status, what leads nowhere together', async (t) => {
  const metrics = makeMetrics()
  const read = metrics.requests.of({ method: 'GET', path: '/v1/messages/{id}' })
  read.answered(200, 3)
  read.answered(200, 40)
  read.answered(404, 1)
  metrics.requests.of(null).answered(404, 1)
  metrics.requests.of(null).answered(405, 1)
  metrics.requests.of({ method: 'GET', path: '/v1/never' })
  const page = await metrics.format({})
  const values = valuesOf(page)
  const labels = 'method="GET",route="/v1/messages/{id}"'
  t.equal(values.get(`http_requests_total{${labels},status="200"}`), 2)
  t.equal(values.get(`http_requests_total{${labels},status="404"}`), 1)
  t.equal(values.get('http_requests_total{method="any",route="none",status="405"}'), 1)
  t.equal(values.get(`http_request_duration_seconds_bucket{${labels},le="0.005"}`), 2)
  t.equal(values.get(`http_request_duration_seconds_count{${labels}}`), 3)
  t.notMatch(page, '/v1/never', 'one that nobody asked for makes no series')
})
