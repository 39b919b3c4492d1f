/**
 * DMARC: OpenDMARC (Debian: libopendmarc2) compared with ours, on a real DNS server on the loopback.
 *
 * It follows RFC 7489: an organization is a name below a public suffix, and `example` is the suffix here. RFC 9989
 * came later, with the tree walk, `np`, `psd` and `t`. Each difference is listed here with its reason.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { DMARC_VECTORS, inputOf } from '../../support/peers/dmarc-vectors.ts'
import { startLinePeer } from '../../support/peers/line-peer.ts'
import { OPENDMARC } from '../../support/peers/verifiers.ts'
import { startZone } from '../../support/peers/zone.ts'
import { fillZone } from '../../support/peers/zone-records.ts'

/** Verdicts of others that differ from ours, by the vector. */
const STRICT = 'a name below the author counts as the author itself, also where alignment is strict'
const FIRST = 'takes the first record; 4.10: several are none'
const WANTS_P = 'wants p; 4.10.1: with rua it is p=none'
const NEWER = 'RFC 7489 knows no such tag'
const SUFFIX = 'an organisation is what lies below a public suffix; 4.10: what the tree walk finds'
const TOLD: Readonly<Record<string, string>> = {
  '4.4.1: adkim=s: a name below does not count': STRICT,
  '4.4.2: aspf=s: a name below does not count': STRICT,
  '4.7: adkim in capitals': STRICT,
  '4.7: no blanks': STRICT,
  '4.7: blanks around equals signs and semicolons': 'takes no blank around the equals sign of v; 4.7 allows it',
  '4.7: v is not the first tag': 'takes v= anywhere',
  '6376 3.2: a tag twice makes it no record': 'the last one counts',
  '4.10: other texts beside it': 'looks at the first text of the name only',
  '4.10: two records are none': FIRST,
  '4.10: two records are none, and the walk goes on': FIRST,
  '4.10.1: no p, but reports are asked for: none': WANTS_P,
  '4.10.1: a p that nobody knows, with reports': WANTS_P,
  '4.10.1: np holds for names that are not there': NEWER,
  '4.7 t: a domain that tests: one step lower': NEWER,
  '4.7 t: quarantine that is tested': NEWER,
  '4.10.2: psd=n ends the walk: the domain is its own organisation': NEWER,
  '4.10.2: psd=y: two organisations do not align': NEWER,
  '4.10.2: psd=y: its policy holds where nobody below has one': NEWER,
  '4.10.2: no record above: each name is its own organisation': SUFFIX,
  '4.10: names of more than eight labels jump to seven': SUFFIX,
  '5.3.1: letters beyond ASCII': 'takes a domain in A-labels only',
}

/** Labels of one letter are part of a public suffix to it: `a.example` becomes `lab-a.example`. */
function lengthen(name: string): string {
  const labels = name.split('.').map((label) => (label.length > 2 ? label : label.replace(/\w$/, 'lab-$&')))
  return labels.join('.')
}

t.test('oracle: OpenDMARC on the vectors of DMARC', { skip: OPENDMARC.missing }, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'sendwright-dmarc-'))
  writeFileSync(join(folder, 'suffixes'), 'example\n')
  const zone = await startZone()
  const peer = startLinePeer(OPENDMARC.program, [...OPENDMARC.args, join(folder, 'suffixes'), String(zone.port)])
  t.teardown(async () => {
    peer.close()
    await zone.close()
    rmSync(folder, { recursive: true })
  })
  const found: string[] = []
  let asked = 0
  for (const [section, what, records, identities, verdict] of DMARC_VECTORS) {
    const { authors, spf, spfDomain, passed, undecided } = inputOf(identities)
    const [author, ...others] = authors.map((address) => address.slice(address.lastIndexOf('@') + 1))
    // It accepts one author, and the results of SPF and DKIM.
    if (author === undefined || others.length > 0 || undecided.length > 0 || spf === 'temperror') continue
    const named = Object.entries(records).map(([name, texts]) => [lengthen(name), texts] as const)
    fillZone(zone, Object.fromEntries(named))
    const job = { author: lengthen(author), dkim: passed.map(lengthen), spf: spf === 'pass' ? lengthen(spfDomain) : '' }
    const theirs = await peer.ask(job)
    for (const [name] of named) zone.remove(name)
    asked += 1
    const name = `${section}: ${what}`
    if ((theirs === verdict) === Object.hasOwn(TOLD, name)) found.push(`${name}: ${theirs}, ours ${verdict}`)
  }
  t.same(found, [])
  t.ok(asked >= 50, `${asked} vectors`)
})
