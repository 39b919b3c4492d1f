/** webhook-figures - what waits by class, until nothing waits or no attempt comes when one was due. */

import t from 'tap'
import { makeWebhookFigures, type SeenWebhook } from '../src/webhook-figures.ts'

const NOW_MS = 1_000_000
const seen = (changes: Partial<SeenWebhook>): SeenWebhook => ({
  isFailing: false,
  waiting: 1,
  oldestAtMs: NOW_MS - 5_000,
  nextAtMs: NOW_MS,
  ...changes,
})
const NOTHING = {
  webhookBacklogHealthy: 0,
  webhookBacklogFailing: 0,
  webhookOldestSecondsHealthy: 0,
  webhookOldestSecondsFailing: 0,
}

t.test('webhook figures: backlog and oldest by class, as the last attempt of each showed it', async (t) => {
  const figures = makeWebhookFigures()
  t.same(figures.take(NOW_MS), NOTHING)
  figures.saw('a', seen({ waiting: 4 }))
  figures.saw('b', seen({ waiting: 7, isFailing: true, oldestAtMs: NOW_MS - 60_000 }))
  figures.saw('c', seen({ waiting: 2, isFailing: true }))
  const both = { webhookBacklogHealthy: 4, webhookBacklogFailing: 9 }
  t.same(figures.take(NOW_MS), { ...both, webhookOldestSecondsHealthy: 5, webhookOldestSecondsFailing: 60 })
  figures.saw('b', seen({ waiting: 6 }))
  t.match(figures.take(NOW_MS), { webhookBacklogHealthy: 10, webhookBacklogFailing: 2 })
  for (const lane of ['a', 'b', 'c']) figures.saw(lane, seen({ waiting: 0 }))
  t.same(figures.take(NOW_MS), NOTHING)
})

t.test('webhook figures: one that is attempted no more is forgotten once its next attempt is late', async (t) => {
  const figures = makeWebhookFigures()
  figures.saw('a', seen({ nextAtMs: NOW_MS + 30_000 }))
  t.match(figures.take(NOW_MS + 90_000), { webhookBacklogHealthy: 1 })
  t.same(figures.take(NOW_MS + 90_001), NOTHING)
  t.same(figures.take(NOW_MS), NOTHING)
})
