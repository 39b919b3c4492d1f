/** log-entry - packed and back; defaults take no room. */

import t from 'tap'
import { withSum } from '../../../cluster/sum.ts'
import { type LogEntry, packLogEntry, parseLogEntry, unpackLogEntry } from '../../../src/state/message/log-entry.ts'

const PLAIN: LogEntry = {
  contentId: 'mic4h2d90abcdefghij-0',
  streamId: null,
  sender: 257,
  recipients: [513],
  kinds: ['to'],
  tagHash: null,
  source: 'a',
}
const STREAM = '0193b2a4-6c00-7017-8000-0123456789ab'

t.test('log-entry: a plain message', async (t) => {
  t.equal(packLogEntry(PLAIN), withSum('["mic4h2d90abcdefghij-0",0,257,[513],"t"]'))
  t.same(unpackLogEntry(packLogEntry(PLAIN)), PLAIN)
})

t.test('log-entry: everything at once, and each alone', async (t) => {
  const whole: LogEntry = {
    ...PLAIN,
    streamId: STREAM,
    recipients: [1, 2, 3],
    kinds: ['to', 'cc', 'bcc'],
    tagHash: 'abcdefgh',
    source: 's',
  }
  for (const entry of [whole, { ...PLAIN, source: 'b' as const }, { ...PLAIN, tagHash: 'abcdefgh' }])
    t.same(unpackLogEntry(packLogEntry(entry)), entry)
})

t.test('log-entry: read from an entry of the log', async (t) => {
  t.same(parseLogEntry({ id: '1-1', fields: ['m', packLogEntry(PLAIN)] }), PLAIN)
  t.equal(parseLogEntry({ id: '1-1', fields: [] }), null)
})
