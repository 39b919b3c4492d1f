/** classify - real replies, in the order of the rules. */

import t from 'tap'
import { classifyReply, makeRefused, makeUnasked } from '../../src/mail/classify.ts'
import type { Phase } from '../../src/mail/outcome.ts'
import { cpuMsOf } from '../support/machine/cpu-time.ts'

type Row = [response: string, classification: string, flags?: string, phase?: Phase]

/** Flags: `h` hard, `t` temporary. The phase is rcpt unless given. */
const ROWS: Row[] = [
  ['450 4.2.0 <a@b.test>: Recipient address rejected: Greylisted, try again in 300 seconds', 'TransientFailure', 't'],
  ['451 4.7.1 Graylisting in action', 'TransientFailure', 't'],
  ['450 4.7.1 grey-listed', 'TransientFailure', 't'],
  ['550 5.7.1 Too many invalid recipients', 'PolicyRelated'],
  [
    '550 5.1.10 RESOLVER.ADR.RecipientNotFound; Recipient a@b.test not found by SMTP address lookup',
    'InvalidRecipient',
    'h',
  ],
  ['556 5.1.10 Domain has null MX', 'BadDomain', 'h'],
  ['550 5.1.4 <a@b.test>: Recipient address rejected: Access denied', 'PolicyRelated'],
  ['550 Domain may not exist or DNS check failed', 'Uncategorized'],
  ['553 sorry, no mail-box here by that name', 'InvalidRecipient', 'h'],
  ['550 Account is not active', 'InactiveMailbox', 'h'],
  ['550 Authentication required', 'AuthenticationFailed'],
  ['550 5.7.18 recipient domain does not accept mail', 'BadDomain', 'h'],
  ['550 5.7.27 Sender domain has null MX', 'InvalidSender'],
  ['550 5.2.1 The email account that you tried to reach is disabled. u7-20 - gsmtp', 'InactiveMailbox', 'h'],
  [
    '554 30 Sorry, your message to a@b.test cannot be delivered. This mailbox is disabled (554.30).',
    'InactiveMailbox',
    'h',
    'dot',
  ],
  [
    '552 5.2.2 The email account that you tried to reach is over quota and inactive. OverQuotaPerm',
    'InactiveMailbox',
    'h',
  ],
  ['550 5.7.1 Your account is suspended for sending spam', 'SpamContent'],
  ['452 4.2.2 The email account that you tried to reach is over quota', 'QuotaIssues', 't'],
  ['552 5.2.2 Mailbox full', 'QuotaIssues'],
  ['552 Requested mail action aborted: exceeded storage allocation', 'QuotaIssues'],
  ['552 5.3.4 Message size exceeds fixed limit', 'ContentRelated', '', 'dot'],
  ['552 5.2.3 Message too large', 'ContentRelated', '', 'dot'],
  ['554 5.7.1 Virus found in message', 'VirusRelated', '', 'dot'],
  [
    '552 5.7.0 This message was blocked because its content presents a potential phishing issue',
    'VirusRelated',
    '',
    'dot',
  ],
  ['554 5.7.1 attachment type not allowed (.exe)', 'ProhibitedAttachment', '', 'dot'],
  ['550 5.7.26 This mail has been blocked because the sender is unauthenticated.', 'AuthenticationFailed', '', 'dot'],
  ['550 5.7.1 DKIM signature invalid', 'AuthenticationFailed', '', 'dot'],
  ['550 5.7.509 Access denied, sending domain does not pass DMARC verification', 'AuthenticationFailed', '', 'dot'],
  ['550 5.7.1 SPF check failed', 'AuthenticationFailed', '', 'mail'],
  ['550 5.1.8 Sender address rejected: Domain not found', 'InvalidSender', '', 'mail'],
  ['553 5.1.7 bad sender', 'InvalidSender', '', 'mail'],
  ['450 4.1.8 <x@y.test>: Sender address rejected: Domain not found', 'InvalidSender', 't'],
  ['554 5.7.1 Service unavailable; Client host [192.0.2.1] blocked using zen.spamhaus.org', 'SpamBlock'],
  ["550 5.7.1 [S3140] Messages from [192.0.2.1] weren't sent. Part of their network is on our block list", 'SpamBlock'],
  ['421 4.7.0 IP address 192.0.2.1 temporarily blocked', 'SpamBlock', 't'],
  ['550 5.7.1 poor reputation', 'SpamBlock'],
  ['554 5.7.1 Message rejected as spam', 'SpamContent', '', 'dot'],
  ['550 5.1.1 <a@b.test>: Recipient address rejected: User unknown in relay recipient table', 'InvalidRecipient', 'h'],
  [
    '550 5.1.1 The email account that you tried to reach does not exist. Please try double-checking',
    'InvalidRecipient',
    'h',
  ],
  [
    "554 delivery error: dd This user doesn't have a yahoo.com account (a@yahoo.com) [-5]",
    'InvalidRecipient',
    'h',
    'dot',
  ],
  ['550 5.4.1 Recipient address rejected: Access denied. AS(201806281)', 'InvalidRecipient', 'h'],
  ['550 5.5.0 Requested action not taken: mailbox unavailable', 'InvalidRecipient', 'h'],
  ['550 No such user here', 'InvalidRecipient', 'h'],
  ['550 5.1.1 unknown user', 'Uncategorized', '', 'mail'],
  ['450 4.1.1 <a@b.test>: unverified address', 'TransientFailure', 't'],
  ['450 5.1.1 user unknown', 'InvalidRecipient', 't'],
  ['550 5.7.1 user unknown', 'InvalidRecipient'],
  ['554 5.7.1 <a@b.test>: Relay access denied', 'RelayingIssues'],
  ["553 sorry, that domain isn't in my list of allowed rcpthosts", 'RelayingIssues'],
  ['554 5.4.6 Too many hops', 'RoutingErrors', '', 'dot'],
  ['550 5.4.4 unrouteable address', 'RoutingErrors'],
  ['552 5.5.3 Too many recipients', 'TooManyRecipients', 't'],
  ['452 4.5.3 Too many recipients', 'TooManyRecipients', 't'],
  ['554 5.7.1 <a@b.test>: Recipient address rejected: Access denied', 'PolicyRelated'],
  ['421 4.7.28 Gmail has detected an unusual rate', 'PolicyRelated', 't'],
  ['451 4.3.0 try again later', 'PolicyRelated', 't'],
  ['550 5.7.1 policy violation', 'PolicyRelated', '', 'dot'],
  ['550 5.2.1 mailbox cannot receive', 'InactiveMailbox', 'h'],
  ['525 5.7.13 account is turned off', 'InactiveMailbox', 'h'],
  ['550 5.1.6 moved', 'InactiveMailbox', 'h'],
  ['550', 'InvalidRecipient', 'h'],
  ['553 5.0.0 address unknown', 'InvalidRecipient', 'h'],
  ['550 5.0.0 go away', 'Uncategorized'],
  ['550 this is a block text nobody knows', 'Uncategorized'],
  ['550', 'Uncategorized', '', 'dot'],
  ['550 unknown error', 'Uncategorized'],
  ['550 5.1.1 unknown error', 'TransientFailure'],
  ['550 no such file or directory', 'Uncategorized'],
  ['550 <a@b.test> unknown', 'InvalidRecipient', 'h'],
  ['550 5.2.1 Mailbox disabled, not accepting messages', 'InactiveMailbox', 'h'],
  ['500 5.5.2 syntax error', 'ProtocolErrors', '', 'mail'],
  ['503 5.5.1 bad sequence of commands', 'ProtocolErrors', 't'],
  ['554 5.6.0 malformed', 'ProtocolErrors', '', 'dot'],
  ['whatever this is', 'ProtocolErrors', 't'],
  ['421 4.4.2 connection timed out', 'BadConnection', 't'],
  ['451 4.3.0 internal error', 'TransientFailure', 't'],
  ['554 transaction failed', 'Uncategorized', '', 'dot'],
]
for (const [response, classification, flags = '', phase = 'rcpt'] of ROWS) {
  t.test(`classify: ${phase}: ${response}`, async (t) => {
    const expected = { classification, temporary: flags.includes('t'), hard: flags.includes('h') }
    t.same(classifyReply({ phase, response }), expected)
  })
}

t.test('classify: no policy code ever suppresses, whatever its text', async (t) => {
  for (let detail = 0; detail < 600; detail += 1) {
    const { hard } = classifyReply({ phase: 'rcpt', response: `550 5.7.${detail} no such user` })
    t.equal(hard, detail === 13 || detail === 18)
  }
})

t.test('classify: nothing is hard before the recipient was named, nor at DATA', async (t) => {
  for (const phase of ['conn', 'mail', 'data', 'compose', 'fence', 'abort'] as const) {
    for (const [response] of ROWS) t.notOk(classifyReply({ phase, response }).hard)
  }
})

t.test('classify: outcomes', async (t) => {
  t.same(makeRefused({ phase: 'rcpt', response: '550 5.1.1 no such user' }), {
    result: 'bounced',
    code: 550,
    response: '550 5.1.1 no such user',
    classification: 'InvalidRecipient',
    hard: true,
    expired: false,
    phase: 'rcpt',
  })
  t.match(makeRefused({ phase: 'dot', response: '503 5.5.1 x' }), { result: 'deferred', code: 503 })
  t.match(makeUnasked('no-domain'), {
    result: 'bounced',
    code: null,
    response: '5.1.2 domain does not exist',
    classification: 'BadDomain',
    hard: true,
  })
  t.match(makeUnasked('private-only'), {
    code: null,
    response: /^5\.4\.4 /,
    classification: 'RoutingErrors',
    hard: false,
  })
})

const DEAD_CODES = [
  '550 5.1.1',
  '550 5.1.3 bad destination:',
  '550 5.2.1',
  '550 5.4.1 Recipient address rejected:',
  '525 5.7.13',
  '550 mailbox unavailable:',
  '550 5.1.1 user unknown,',
  '550 account disabled,',
]
/** Each shows by itself that the refusal is not about the recipient. */
const ABOUT_ELSE = [
  'rate limit of the recipient reached',
  'too many messages in the last hour',
  'volume of mail exceeds what is taken',
  'mailbox is full',
  'user over quota',
  'boîte pleine',
  'Postfach voll',
  'buzón lleno',
  'casella piena',
  'ящик переполнен',
  '邮箱已满',
  'message content was refused by content filter',
  'message quarantined',
  'message rejected as spam',
  'virus found',
  'sender address could not be verified',
  'sender domain has no MX record',
  'the domain of the sender does not resolve',
  'client host [192.0.2.1] rejected',
  'HELO name is not valid',
  'no PTR record for 192.0.2.1',
  'reverse DNS lookup failed',
  'relay access denied',
  'relaying not allowed',
  'authentication required',
  'sender is unauthenticated',
  'DMARC check failed',
  'SPF fail',
  'STARTTLS required',
  'greylisted',
  'grey-listing in effect',
  'your IP address is on a blocklist',
  '192.0.2.1 listed in zen.spamhaus.org',
  'blocked using bl.spamcop.net',
  'poor reputation',
  'recipient does not want mail from you',
  'refused due to recipient preferences',
  'only accepts mail from members',
  'not authorized to send to this recipient',
  'temporary failure',
  'please try again later',
  'temporarily unavailable',
  'policy violation',
  'blocked for security reasons',
  'message loops back to myself',
  'hop count exceeded, possible mail loop',
  'no route to host',
  'the host is unreachable',
  'local configuration error',
  'internal server error',
  'error in processing',
  'insufficient system resources',
  'message expired after sitting in the queue',
  'did not respond in time, giving up',
  'improper use of 8-bit data in message header',
  'message headers are not accepted',
  'message file too big',
  'the space of the user has been used up: disk space limit',
  'by non-member to a members-only list',
  'rejected due to user rules',
  'this account is protected by a challenge',
  'BATV validation failure',
  'your access to this system has been rejected',
  "we don't handle mail for that domain",
  'not configured to relay mail',
  'bad sequence of commands',
  'no data before greeting',
  'certificate of the server is not valid',
  'account inbounds disabled',
]

t.test('classify: words veto codes [message.hard]', async (t) => {
  const pairs = DEAD_CODES.flatMap((code) => ABOUT_ELSE.map((words) => `${code} ${words}`))
  const hard = pairs.filter((response) => classifyReply({ phase: 'rcpt', response }).hard)
  t.same(hard, [])
})

t.test('classify: names veto nothing [message.hard]', async (t) => {
  const names = ['spam', 'policy', 'sender', 'rate-limit', 'quota', 'relay', 'greylist', 'dmarc', 'full', 'blacklist']
  const soft = names
    .flatMap((name) => [
      `550 5.1.1 <${name}@example.com>: Recipient address rejected: User unknown`,
      `550 5.1.1 ${name}@example.com: no such user`,
      `550 5.1.1 <ann@${name}.example.com>: user unknown`,
      `550 5.1.1 user unknown (mx1.${name}.example.com)`,
      `550 5.1.1 user unknown, see https://example.com/${name}?${name}=${name}`,
      `550 5.1.1 <${name}>... User unknown`,
      `550 5.1.1 "${name}"@example.com is not known here`,
    ])
    .filter((response) => !classifyReply({ phase: 'rcpt', response }).hard)
  t.same(soft, [])
})

t.test('classify: the quoted server decides, except about the next attempt [delivery.class]', async (t) => {
  const rows: [response: string, classification: string, flags: string][] = [
    [
      '450 4.1.1 <a@b.test>: undeliverable address: host mx[192.0.2.1] said: 550 5.1.1 unknown',
      'InvalidRecipient',
      't',
    ],
    ['550 5.1.1 <a@b.test>: undeliverable address: host mx[192.0.2.1] said: 451 4.3.0 wait', 'TransientFailure', ''],
    ['550 5.1.1 host a said: 550 host b said: 552 5.2.2 mailbox full', 'QuotaIssues', ''],
    ["550 5.1.0 - Unknown address error 550-'no such user' (delivery attempts: 0)", 'InvalidRecipient', 'h'],
    ['550 5.1.1 sender verify: host mx said: 550 5.1.1 user unknown', 'InvalidSender', ''],
    ['550 5.1.1 host mx said: 250 ok', 'Uncategorized', ''],
  ]
  for (const [response, classification, flags] of rows)
    t.same(
      classifyReply({ phase: 'rcpt', response }),
      { classification, temporary: flags.includes('t'), hard: flags.includes('h') },
      response,
    )
})

/** Pieces that begin what a pattern looks for, and never end it. */
const HOSTILE = [
  'account ',
  'sender ',
  '@@',
  'ip ',
  'attachment ',
  'a@b ',
  '<',
  '<<',
  'spf ',
  'a.',
  'a-',
  '1.',
  'ab:',
  '"a',
  'http://',
  "550 '",
  'said: 550 ',
  'smtp;550 ',
  'check ',
  'check try ',
  'domain ',
  'limit ',
  'relay ',
  'recipient ',
  'exceeds ',
  'return to ',
  'адресат ',
  '用户',
]

t.test('classify: no rule takes long on a hostile line', async (t) => {
  const lines = HOSTILE.flatMap((unit) =>
    HOSTILE.map((other) => `550 5.1.1 ${unit.repeat(Math.ceil(240 / unit.length))}${other.repeat(512)}`),
  )
  const worst = { line: '', ms: 0 }
  for (const response of lines) {
    const ms = await cpuMsOf(() => classifyReply({ phase: 'rcpt', response }))
    if (ms > worst.ms) Object.assign(worst, { line: response.slice(0, 40), ms })
  }
  // A bound of hundreds of milliseconds, not a measurement: exponential patterns would not come back at all.
  t.ok(worst.ms < 500, `${worst.line}: ${Math.round(worst.ms)} ms`)
})
