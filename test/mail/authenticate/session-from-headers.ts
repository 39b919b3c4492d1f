/** session-from-headers - the sending host according to a mail's own header, in the forms that servers write. */
import t from 'tap'
import { readSessionFromHeaders, type SessionFromHeaders } from '../../../src/mail/authenticate/session-from-headers.ts'

const NOBODY: SessionFromHeaders = { address: null, ip: null, helo: null }

/** subject, header, its session */
const CASES: [string, string, Partial<SessionFromHeaders>][] = [
  [
    'Postfix',
    'Return-Path: <bounce@a.example>\nReceived: from mx.a.example (host.a.example [198.51.101.7])\n\tby mx.b.example (Postfix) with ESMTPS id 1;\n\tMon, 23 Nov 2026 08:00:00 +0000',
    { address: 'bounce@a.example', ip: '198.51.101.7', helo: 'mx.a.example' },
  ],
  [
    'Gmail, IPv6',
    'Return-Path: <>\nReceived: from mail.a.example (mail.a.example. [2606:4700::17])\n by mx.google.com with ESMTPS id 1 for <x@b.example>',
    { address: '', ip: '2606:4700::17', helo: 'mail.a.example' },
  ],
  [
    'Exim',
    'Received: from host.a.example ([198.51.101.7] helo=mx.a.example)\n by mx.b.example with esmtps',
    { ip: '198.51.101.7', helo: 'mx.a.example' },
  ],
  [
    'IPv6 as RFC 5321 writes it',
    'Received: from mx.a.example ([IPv6:2606:4700::17]) by mx.b.example',
    { ip: '2606:4700::17', helo: 'mx.a.example' },
  ],
  [
    'servers of its own above, forged ones below',
    [
      'Received: from mx.b.example (localhost [127.0.0.1]) by store.b.example',
      'Received: from inner.b.example (inner [10.0.0.7]) by mx.b.example',
      'Received: from mx.a.example (x [198.51.101.7]) by inner.b.example',
      'Received: from bank.example (bank.example [198.51.101.99]) by mx.a.example',
    ].join('\n'),
    { ip: '198.51.101.7', helo: 'mx.a.example' },
  ],
  ['who took it is not who brought it', 'Received: from mx.a.example by [198.51.101.7]', {}],
  ['by hand', 'Received: by mx.b.example (Postfix, from userid 0)', {}],
  ['without', 'Subject: x', {}],
  ['a path with blanks', 'Return-Path:  < a@b.example > ', { address: 'a@b.example' }],
  ['a path with brackets in it', 'Return-Path: <a@b.example> <c@d.example>', {}],
  ['a path without brackets', 'return-path: a@b.example', { address: 'a@b.example' }],
]

t.test('session-from-headers: the connecting host, and MAIL FROM', async (t) => {
  for (const [what, header, told] of CASES) {
    const raw = Buffer.from(`${header}\n\nReceived: from evil (evil [198.51.101.66]) by x`)
    t.same(readSessionFromHeaders(raw), { ...NOBODY, ...told }, what)
  }
  t.same(readSessionFromHeaders(Buffer.alloc(0)), NOBODY)
})
