/** feedback-id - its parts, and a client's own. */

import t from 'tap'
import { formatFeedbackId, hasFeedbackId } from '../../../src/mail/compose/feedback-id.ts'

const IDS = {
  streamId: '01a1f8d8-8300-7000-8000-0e7faee555a7',
  accountId: '01a1f8d8-8300-7000-8000-aaaabbbbcccc',
  senderId: 'sw0123456789',
}

t.test('feedback-id: tag, stream, account, installation [send.feedback-id]', async (t) => {
  t.equal(formatFeedbackId({ ...IDS, tagHash: 'a_b-c123' }), 'a_b-c123:aee555a7:bbbbcccc:sw0123456789')
  t.equal(formatFeedbackId({ ...IDS, tagHash: null }), 'aee555a7:bbbbcccc:sw0123456789')
})

t.test('feedback-id: a field of the client is kept, however it is written [send.feedback-id]', async (t) => {
  t.equal(hasFeedbackId({}), false)
  t.equal(hasFeedbackId({ 'X-Feedback-ID': 'x', 'FEEDBACK-id': 'y' }), true)
  t.equal(hasFeedbackId({ 'X-Feedback-ID': 'x' }), false)
})
