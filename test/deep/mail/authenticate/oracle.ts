/**
 * Other verifiers compared with ours on the same vectors: dkimpy (Debian: python3-dkim) for DKIM and ARC, Mail::DKIM
 * (libmail-dkim-perl) for DKIM. Each difference is listed here with its reason. Without them the tests are skipped.
 */
import t from 'tap'
import { ARC_VECTORS, ARC_ZONE } from '../../../support/peers/arc-vectors.ts'
import { DKIM_VECTORS, keyZone, signedMail } from '../../../support/peers/dkim-vectors.ts'
import { startLinePeer } from '../../../support/peers/line-peer.ts'
import { DKIMPY, DKIMPY_ARC, MAIL_DKIM, type Verifier } from '../../../support/peers/verifiers.ts'
import { startZone } from '../../../support/peers/zone.ts'

/** Verdicts of others that differ from ours, by the vector. */
const DKIMPY_TOLD: Readonly<Record<string, string>> = {
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
const DKIMPY_ARC_TOLD: Readonly<Record<string, string>> = {
  '51 sets': 'knows no largest instance, 4.2.1 says 50',
  Ed25519: 'rejects it; RFC 8463 covers seals too',
  'i that is no number, message signature': 'accepts it',
  'i is not the first in the results': 'accepts it',
  'cv in capitals': 'compares cv= by case; the strings of an ABNF have none (RFC 5234 2.3)',
  'message signature: no c is simple/simple': 'rejects it; RFC 6376 3.5 gives the default',
  'sets in another order': 'takes the fields as they stand, 5.1.1 by their instance',
  'the key is for another hash': 'knows no h= of keys',
}
const MAIL_DKIM_TOLD: Readonly<Record<string, string>> = {
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

/** The verdict on each job. */
async function ask({ program, args }: Verifier, jobs: readonly object[], ...rest: string[]): Promise<string[]> {
  const peer = startLinePeer(program, [...args, ...rest])
  const verdicts: string[] = []
  for (const job of jobs) verdicts.push(await peer.ask(job))
  peer.close()
  return verdicts
}

/** Unlisted differences, and listed ones that do not occur. */
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
t.test('oracle: dkimpy on the vectors of DKIM', { skip: DKIMPY.missing }, async (t) => {
  const verdicts = await ask(DKIMPY, dkimJobs)
  t.equal(verdicts.length, dkimJobs.length)
  t.same(surprises(verdicts, { own: dkimOwn, told: DKIMPY_TOLD }), [])
})

t.test('oracle: dkimpy on the vectors of ARC', { skip: DKIMPY.missing }, async (t) => {
  const jobs = ARC_VECTORS.map(([, , raw, , zone = ARC_ZONE]) => ({ raw: raw.toString('base64'), zone }))
  const verdicts = await ask(DKIMPY_ARC, jobs)
  t.equal(verdicts.length, jobs.length)
  t.same(
    surprises(verdicts, { own: ARC_VECTORS.map(([, what, , verdict]) => [what, verdict]), told: DKIMPY_ARC_TOLD }),
    [],
  )
})

t.test('oracle: Mail::DKIM on the vectors of DKIM', { skip: MAIL_DKIM.missing }, async (t) => {
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
    const own = places.map((at) => dkimJobs[at] as object)
    const answers = await ask(MAIL_DKIM, own, String(zone.port))
    for (const [index, at] of places.entries()) verdicts[at] = answers[index] ?? ''
  }
  t.same(surprises(verdicts, { own: dkimOwn, told: MAIL_DKIM_TOLD }), [])
})
