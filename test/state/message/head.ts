/** head - packed and back, whatever is absent. */

import t from 'tap'
import { type Head, packHead, unpackHead } from '../../../src/state/message/head.ts'

const BARE: Head = {
  subject: 'Hi',
  senderName: null,
  recipientNames: [null],
  tag: null,
  metadata: {},
  headers: {},
  attachments: [],
  stored: null,
}
const attachment = { name: 'a.txt', contentType: 'text/plain', contentId: null, size: 10, inline: false }

const CASES: readonly { name: string; head: Head; packed?: string }[] = [
  { name: 'a subject alone', head: BARE, packed: '["Hi"]' },
  { name: 'a sender’s name', head: { ...BARE, senderName: 'Ada' }, packed: '["Hi",["Ada"]]' },
  {
    name: 'a name of the second recipient',
    head: { ...BARE, recipientNames: [null, 'B', null] },
    packed: '["Hi",[0,0,"B"]]',
  },
  { name: 'an erased one', head: { ...BARE, subject: null, headers: { A: '1' } }, packed: '[0,0,0,0,{"A":"1"}]' },
  { name: 'tag and metadata', head: { ...BARE, tag: 't', metadata: { k: '' } }, packed: '["Hi",0,"t",{"k":""}]' },
  {
    name: 'attachments',
    head: {
      ...BARE,
      attachments: [attachment, { ...attachment, contentType: null, contentId: 'x', size: 0, inline: true }],
    },
  },
  {
    name: 'an empty attachment',
    head: { ...BARE, attachments: [{ ...attachment, contentType: null, size: 0 }] },
    packed: '["Hi",0,0,0,0,[["a.txt"]]]',
  },
  {
    name: 'a body in the content store',
    head: { ...BARE, stored: { key: 'sealed', body: true, files: false } },
    packed: '["Hi",0,0,0,0,0,["sealed","b"]]',
  },
  {
    name: 'both in the content store',
    head: { ...BARE, attachments: [attachment], stored: { key: 'sealed', body: true, files: true } },
  },
]

for (const { name, head, packed } of CASES) {
  t.test(`head: ${name}, packed and back`, async (t) => {
    if (packed !== undefined) t.equal(packHead(head), packed)
    t.same(unpackHead(packHead(head), head.recipientNames.length), head)
  })
}
