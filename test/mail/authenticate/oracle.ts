/**
 * Other verifiers beside ours on the same vectors: dkimpy (Debian: python3-dkim) for DKIM and ARC, Mail::DKIM
 * (libmail-dkim-perl) for DKIM. Where one says otherwise it is told here, with the reason; without them the tests are skipped.
 */
import { execFile, execFileSync } from 'node:child_process'
import { promisify } from 'node:util'
import t from 'tap'
import { ARC_VECTORS, ARC_ZONE } from '../../support/peers/arc-vectors.ts'
import { DKIM_VECTORS, keyZone, signedMail } from '../../support/peers/dkim-vectors.ts'
import { startZone } from '../../support/peers/zone.ts'

/** Where Debian puts its modules. */
const PYTHON = '/usr/bin/python3'
const RUN_MS_MAX = 120_000
const OUTPUT_BYTES_MAX = 10_000_000

/** In: lines of JSON `{raw, zone}`. Out: a verdict for each. */
const DKIMPY = `
import sys, json, base64, logging
import dkim
logging.disable(logging.CRITICAL)
kind = sys.argv[1]
for line in sys.stdin:
    job = json.loads(line)
    def look(name, timeout=5, zone=job['zone']):
        name = name.decode() if isinstance(name, bytes) else name
        records = zone.get(name.rstrip('.').lower(), [])
        texts = [record[4:] for record in records if record.startswith('TXT ')]
        return texts[0].encode() if texts else None
    raw = base64.b64decode(job['raw'])
    try:
        if kind == 'arc':
            verdict = dkim.arc_verify(raw, dnsfunc=look)[0].decode()
        else:
            verdict = 'pass' if dkim.verify(raw, dnsfunc=look) else 'fail'
    except Exception as error:
        verdict = 'fail'
    print(verdict, flush=True)
`
const MAIL_DKIM = `
use strict; use warnings; use JSON::PP; use MIME::Base64; use Net::DNS::Resolver; use Mail::DKIM::Verifier;
my $resolver = Net::DNS::Resolver->new(nameservers => ['127.0.0.1'], port => $ARGV[0], recurse => 0, udp_timeout => 1, retry => 1);
Mail::DKIM::DNS::resolver($resolver);
while (my $line = <STDIN>) {
  my $raw = decode_base64(decode_json($line)->{raw});
  my $verdict = eval { my $dkim = Mail::DKIM::Verifier->new(); $dkim->PRINT($raw); $dkim->CLOSE(); $dkim->result } // 'error';
  print(($verdict eq 'pass' ? 'pass' : 'fail'), "\\n");
}
`

/** Verdicts of others that are not ours, by what the vector is. */
const DKIMPY_DKIM: Readonly<Record<string, string>> = {
  '6376 3.5 h: empty': 'takes an empty list, 3.5 forbids it',
  '6376 5.4, 6.1.1: From is not signed': 'does not ask for From, 6.1.1 does',
  '6376 3.6.1 t=s: a name below is forbidden': 'knows no t=s',
  '6376 3.5 q: one of two is known': 'takes only q=dns/txt alone',
  '6376 3.5 x: to come': 'judges by the clock of the machine, for which the vector has expired',
  '6376 3.4.2: blanks of a signed field, relaxed': 'keeps the blank before the colon, 3.4.2 deletes it',
  '6376 3.6.1 v: not the first tag': 'takes v= anywhere',
  '6376 3.6.1 h: another hash': 'knows no h= of keys',
  '6376 3.6.1 s: for mail': 'takes one service, s= is a list',
}
const DKIMPY_ARC: Readonly<Record<string, string>> = {
  '51 sets': 'knows no largest instance, 4.2.1 says 50',
  Ed25519: 'rejects it; RFC 8463 covers seals too',
  'i that is no number, message signature': 'accepts it',
  'i is not the first in the results': 'accepts it',
  'cv in capitals': 'compares cv= by case; the strings of an ABNF have none (RFC 5234 2.3)',
  'message signature: no c is simple/simple': 'rejects it; RFC 6376 3.5 gives the default',
  'sets in another order': 'takes the fields as they stand, 5.1.1 by their instance',
  'the key is for another hash': 'knows no h= of keys',
}
const MAIL_DKIM_DKIM: Readonly<Record<string, string>> = {
  '6376 3.5 v: absent': 'does not ask for it',
  '6376 3.5 bh: absent': 'does not ask for it',
  '6376 3.5 h: empty': 'takes an empty list, 3.5 forbids it',
  '6376 5.4, 6.1.1: From is not signed': 'does not ask for From, 6.1.1 does',
  '6376 3.5 l: nothing of the body': 'rejects it',
  '6376 3.5 t: no number': 'does not look at t=',
  '6376 3.5 x: to come': 'judges by the clock of the machine, for which the vector has expired',
  '6376 3.2: a tag twice': 'accepts it',
  '6376 3.2: two semicolons': 'accepts it',
  '6376 3.6.1 v: not the first tag': 'takes v= anywhere',
  '6376 3.2, 3.6.1: a tag of the record twice': 'accepts it',
  '8301 3.2: a key of 768 bits': 'knows no least length of keys',
  '8463 3: Ed25519': 'rejects it',
}

function has(command: string, args: string[]): boolean {
  try {
    execFileSync(command, args, { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

async function ask(command: string, args: string[], jobs: readonly object[]): Promise<string[]> {
  const running = promisify(execFile)(command, args, { timeout: RUN_MS_MAX, maxBuffer: OUTPUT_BYTES_MAX })
  running.child.stdin?.end(jobs.map((job) => `${JSON.stringify(job)}\n`).join(''))
  return (await running).stdout.trim().split('\n')
}

/** What differs and is not told, and what is told and does not differ. */
function surprises(
  verdicts: readonly string[],
  { own, told }: { own: readonly (readonly [what: string, verdict: string])[]; told: Readonly<Record<string, string>> },
): string[] {
  return own.flatMap(([what, verdict], at) => {
    const differs = (verdict === 'pass') !== (verdicts[at] === 'pass')
    return differs === Object.hasOwn(told, what) ? [] : [`${what}: ${verdicts[at]}, ours ${verdict}`]
  })
}

const dkimJobs = DKIM_VECTORS.map(([, , vector]) => ({
  raw: signedMail(vector).toString('base64'),
  zone: keyZone(vector.record),
}))
const dkimOwn = DKIM_VECTORS.map(([section, what, , verdict]) => [`${section}: ${what}`, verdict] as const)
const hasDkimpy = has(PYTHON, ['-c', 'import dkim'])
const hasMailDkim = has('perl', ['-MMail::DKIM::Verifier', '-MNet::DNS', '-e', '1'])

t.test('oracle: dkimpy on the vectors of DKIM', { skip: !hasDkimpy && 'no python3-dkim' }, async (t) => {
  const verdicts = await ask(PYTHON, ['-c', DKIMPY, 'dkim'], dkimJobs)
  t.equal(verdicts.length, dkimJobs.length)
  t.same(surprises(verdicts, { own: dkimOwn, told: DKIMPY_DKIM }), [])
})

t.test('oracle: dkimpy on the vectors of ARC', { skip: !hasDkimpy && 'no python3-dkim' }, async (t) => {
  const jobs = ARC_VECTORS.map(([, , raw, , zone = ARC_ZONE]) => ({ raw: raw.toString('base64'), zone }))
  const verdicts = await ask(PYTHON, ['-c', DKIMPY, 'arc'], jobs)
  t.equal(verdicts.length, jobs.length)
  t.same(surprises(verdicts, { own: ARC_VECTORS.map(([, what, , verdict]) => [what, verdict]), told: DKIMPY_ARC }), [])
})

t.test('oracle: Mail::DKIM on the vectors of DKIM', { skip: !hasMailDkim && 'no libmail-dkim-perl' }, async (t) => {
  const zone = await startZone()
  t.teardown(() => zone.close())
  const verdicts: string[] = []
  // The zone is one for all; those with the same records are asked together.
  for (const records of new Set(dkimJobs.map((job) => JSON.stringify(job.zone)))) {
    for (const name of ['s._domainkey.a.example']) zone.remove(name)
    for (const [name, values] of Object.entries(JSON.parse(records) as Record<string, string[]>)) {
      if (values.includes('TIMEOUT')) zone.fail(name, 'servfail')
      else
        zone.set(
          name,
          ...values.map((value) => ({ type: 'TXT' as const, data: value.slice(4).match(/.{1,200}/gs) ?? [] })),
        )
    }
    const places = dkimJobs.flatMap((job, at) => (JSON.stringify(job.zone) === records ? [at] : []))
    const answers = await ask(
      'perl',
      ['-e', MAIL_DKIM, String(zone.port)],
      places.map((at) => dkimJobs[at] as object),
    )
    for (const [index, at] of places.entries()) verdicts[at] = answers[index] ?? ''
  }
  t.same(surprises(verdicts, { own: dkimOwn, told: MAIL_DKIM_DKIM }), [])
})
