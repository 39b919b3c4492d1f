/** head - packed and unpacked, with any fields absent. */

import t from 'tap'
import { withSum } from '../../../cluster/sum.ts'
import { collectSpellings, type Head, packHead, spelledAddress, unpackHead } from '../../../src/state/message/head.ts'

const BARE: Head = {
  subject: 'Hi',
  senderName: null,
  recipientNames: [null],
  tag: null,
  metadata: {},
  headers: {},
  attachments: [],
  stored: null,
  spellings: [],
  raw: null,
  broadcast: null,
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
  { name: 'a sender’s spelling', head: { ...BARE, spellings: ['Shop'] }, packed: '["Hi",0,0,0,0,0,0,["Shop"]]' },
  {
    name: 'the spelling of the second recipient',
    head: { ...BARE, recipientNames: [null, null], spellings: [null, null, 'B.C'] },
    packed: '["Hi",0,0,0,0,0,0,[0,0,"B.C"]]',
  },
  {
    name: 'a message that came whole',
    head: { ...BARE, raw: { bytes: 9, messageId: '<a@b.c>' } },
    packed: '["Hi",0,0,0,0,0,0,0,[9,"<a@b.c>"]]',
  },
  {
    name: 'one whose client wants reports',
    head: { ...BARE, raw: { bytes: 9, messageId: '<a@b.c>', reports: { envid: 'order 17', notify: [2, 15, 0] } } },
  },
  {
    name: 'one whose client wants reports, without ids',
    head: { ...BARE, raw: { bytes: 9, messageId: null, reports: { envid: null, notify: [2] } } },
  },
  { name: 'one without an id of its own', head: { ...BARE, raw: { bytes: 9, messageId: null } } },
]

for (const { name, head, packed } of CASES) {
  t.test(`head: ${name}, packed and back`, async (t) => {
    if (packed !== undefined) t.equal(packHead(head), withSum(packed))
    t.same(unpackHead(packHead(head), head.recipientNames.length), head)
  })
}

/** The addresses in a request (sender, then recipients), and their stored form. */
const SPELLED: readonly (readonly [addresses: readonly [string, ...string[]], kept: readonly (string | null)[]])[] = [
  [['shop@acme.com', 'ann@x.test'], []],
  [['Shop@acme.com', 'ann@x.test'], ['Shop']],
  [
    ['shop@acme.com', 'ann@x.test', 'Bob.B+tag@x.test', 'eve@x.test'],
    [null, null, 'Bob.B+tag'],
  ],
  [
    ['SHOP@acme.com', 'ANN@x.test', 'bob@x.test', 'eVe@x.test'],
    ['SHOP', 'ANN', null, 'eVe'],
  ],
]

t.test('head: an address is spelled as its request wrote it', async (t) => {
  for (const [addresses, kept] of SPELLED) {
    const [sender, ...recipients] = addresses
    const spellings = collectSpellings(
      sender,
      recipients.map((address) => ({ address })),
    )
    t.same(spellings, kept)
    const head = unpackHead(packHead({ ...BARE, spellings }), recipients.length)
    t.same(
      addresses.map((address, place) => spelledAddress(head, place, address.toLowerCase())),
      addresses,
    )
    t.same(
      addresses.map((_, place) => spelledAddress(head, place, 'erased-x@erased.invalid')),
      addresses.map(() => 'erased-x@erased.invalid'),
      'another one by now',
    )
    t.same(
      addresses.map((_, place) => spelledAddress(head, place, '')),
      addresses.map(() => ''),
      'gone',
    )
  }
  const older = unpackHead('["Hi"]', 1)
  t.equal(spelledAddress(older, 1, 'Ann@x.test'), 'Ann@x.test', 'a row of before shows its own')
  t.equal(spelledAddress({ spellings: [null, 'ANN'] }, 1, 'Ann@x.test'), 'ANN@x.test', 'under a row of before')
})
