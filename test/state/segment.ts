/** segment - the end of one, with small bounds, and the contents of its name. */

import t from 'tap'
import {
  bucketsOfSegment,
  enterSegment,
  hasPostings,
  isTestSegment,
  SEGMENT_BOUNDS,
  type Segment,
  type SegmentLoad,
  segmentEndMs,
  segmentKeys,
} from '../../src/state/segment.ts'

const BOUNDS = {
  recipientsMax: 10,
  bytesMax: 1000,
  busyRecipients: 8,
  fullRecipients: 10,
  busyBuckets: 64,
  fullBuckets: 256,
}
const NOW_MS = Date.UTC(2026, 10, 30, 23, 59, 59, 999)
const LOAD: SegmentLoad = { idMs: NOW_MS, test: false, recipients: 1, bytes: 10 }
const OPEN: Segment = { name: '202611-3-1', recipients: 5, bytes: 500, lastMs: NOW_MS - 1 }

const POSTED: Segment = { ...OPEN, name: '202611-3-64' }

const CASES: readonly { name: string; open: Segment | null; load?: Partial<SegmentLoad>; into: string }[] = [
  { name: 'the first of a server', open: null, into: '202611-0-1' },
  { name: 'the first of a test server', open: null, load: { test: true }, into: '20261130-0-1' },
  { name: 'one with room', open: OPEN, into: '202611-3-1' },
  { name: 'recipients that just fit without postings', open: OPEN, load: { recipients: 3 }, into: '202611-3-1' },
  { name: 'one recipient too many without postings', open: OPEN, load: { recipients: 4 }, into: '202611-4-64' },
  { name: 'recipients that just fit', open: POSTED, load: { recipients: 5 }, into: '202611-3-64' },
  { name: 'one recipient too many', open: POSTED, load: { recipients: 6 }, into: '202611-4-256' },
  { name: 'bytes that just fit', open: OPEN, load: { bytes: 500 }, into: '202611-3-1' },
  { name: 'one byte too many', open: OPEN, load: { bytes: 501 }, into: '202611-4-1' },
  {
    name: 'a full one, within its last millisecond',
    open: { ...OPEN, recipients: 10, lastMs: NOW_MS },
    into: '202611-3-1',
  },
  { name: 'a full one', open: { ...POSTED, recipients: 10 }, into: '202611-4-256' },
  { name: 'a busy one with room', open: { ...POSTED, recipients: 9 }, into: '202611-3-64' },
  {
    name: 'a test server has no postings',
    open: { ...OPEN, name: '20261130-0-1' },
    load: { test: true, recipients: 5 },
    into: '20261130-0-1',
  },
  {
    name: 'a full one of a test server',
    open: { ...OPEN, name: '20261130-0-1' },
    load: { test: true, recipients: 6 },
    into: '20261130-1-1',
  },
  { name: 'another month', open: OPEN, load: { idMs: NOW_MS + 1 }, into: '202612-0-1' },
  {
    name: 'another month after a busy one',
    open: { ...OPEN, recipients: 7 },
    load: { idMs: NOW_MS + 1 },
    into: '202612-0-64',
  },
  {
    name: 'another day of a busy test server',
    open: { ...OPEN, name: '20261130-0-1', recipients: 9 },
    load: { idMs: NOW_MS + 1, test: true },
    into: '20261201-0-1',
  },
]

for (const { name, open, load, into } of CASES) {
  t.test(`segment: ${name} -> ${into}`, async (t) => {
    const { segment, opened } = enterSegment(open, { ...LOAD, ...load }, BOUNDS)
    const { recipients, bytes, idMs } = { ...LOAD, ...load }
    t.equal(segment.name, into)
    t.equal(opened, open?.name !== into)
    t.equal(segment.recipients, recipients + (opened ? 0 : (open?.recipients ?? 0)))
    t.equal(segment.bytes, bytes + (opened ? 0 : (open?.bytes ?? 0)))
    t.equal(segment.lastMs, idMs)
  })
}

t.test('segment: a week after its first message a segment ends, so that it can leave Redis', async (t) => {
  const bounds = { ...BOUNDS, msMax: 1_000 }
  const idMs = NOW_MS - 5_000
  const { segment } = enterSegment(null, { ...LOAD, idMs }, bounds)
  t.equal(segment.firstMs, idMs)
  const late = enterSegment(segment, { ...LOAD, idMs: idMs + 999 }, bounds)
  t.match(late, { opened: false, segment: { firstMs: idMs } })
  t.match(enterSegment(late.segment, { ...LOAD, idMs: idMs + 1_000 }, bounds), { opened: true })
  const { firstMs: _, ...early } = segment
  t.match(enterSegment(early, { ...LOAD, idMs: idMs + 4_000 }, bounds), { opened: false }, 'opened by an early version')
})

t.test('segment: bounds of the product', async (t) => {
  t.same(SEGMENT_BOUNDS, {
    recipientsMax: 50_000,
    bytesMax: 16_777_216,
    msMax: 604_800_000,
    busyRecipients: 5_000,
    fullRecipients: 40_000,
    busyBuckets: 64,
    fullBuckets: 256,
  })
})

t.test('segment: a name contains its end, its kind and its buckets', async (t) => {
  t.equal(segmentEndMs('202611-0-64'), NOW_MS + 1)
  t.equal(segmentEndMs('20261130-7-1'), NOW_MS + 1)
  t.ok(isTestSegment('20261130-7-1'))
  t.notOk(isTestSegment('202611-0-64'))
  t.equal(bucketsOfSegment('202611-12-64'), 64)
  t.equal(segmentKeys(1, 's', '202611-0-64').length, 3 + 128)
  t.ok(segmentKeys(1, 's', '202611-0-64').includes('{s001}:by-person:s:202611-0-64:63'))
  t.ok(hasPostings('202611-1-64'))
  t.notOk(hasPostings('202611-64-1'), 'the log of a segment with one bucket is searched itself')
  t.same(
    segmentKeys(1, 's', '202611-64-1'),
    ['log', 'head', 'status'].map((name) => `{s001}:${name}:s:202611-64-1`),
  )
})
