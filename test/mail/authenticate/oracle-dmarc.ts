/**
 * DMARC: OpenDMARC (Debian: libopendmarc2) beside ours, asking a real DNS server on the loopback.
 *
 * It follows RFC 7489: an organisation is what lies below a public suffix, of which `example` is the one here. RFC 9989 came
 * after it: the tree walk, `np`, `psd`, `t`. Where it says otherwise it is told here, with the reason.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { DMARC_VECTORS, inputOf } from '../../support/peers/dmarc-vectors.ts'
import { isInstalled, startLinePeer } from '../../support/peers/line-peer.ts'
import { startZone } from '../../support/peers/zone.ts'
import { fillZone } from '../../support/peers/zone-records.ts'

const PYTHON = '/usr/bin/python3'
/** `OPENDMARC_LIB_T` of its header: a kind, a path of PATH_MAX bytes, a count and three addresses. */
const PYTHON_OPENDMARC = `
import sys, json, ctypes, socket
lib = ctypes.CDLL('libopendmarc.so.2')
class Address(ctypes.Structure):
    _fields_ = [('family', ctypes.c_ushort), ('port', ctypes.c_uint16), ('host', ctypes.c_ubyte * 4), ('rest', ctypes.c_ubyte * 8)]
class Settings(ctypes.Structure):
    _fields_ = [('kind', ctypes.c_int), ('suffixes', ctypes.c_char * 4096), ('count', ctypes.c_int), ('servers', Address * 3)]
settings = Settings(kind=1, suffixes=sys.argv[2].encode(), count=1)
settings.servers[0] = Address(socket.AF_INET, socket.htons(int(sys.argv[1])), (127, 0, 0, 1))
assert lib.opendmarc_policy_library_init(ctypes.byref(settings)) == 0
lib.opendmarc_policy_connect_init.restype = ctypes.c_void_p
context, text, number = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int
lib.opendmarc_policy_store_from_domain.argtypes = [context, text]
lib.opendmarc_policy_store_dkim.argtypes = [context, text, text, number, text]
lib.opendmarc_policy_store_spf.argtypes = [context, text, number, number, text]
lib.opendmarc_policy_query_dmarc.argtypes = [context, text]
lib.opendmarc_get_policy_to_enforce.argtypes = [context]
lib.opendmarc_policy_connect_shutdown.argtypes = [context]
PASS, MAIL_FROM, TEMPORARY = 1, 1, 11
VERDICTS = {14: 'none', 15: 'pass', 16: 'fail reject', 17: 'fail quarantine', 18: 'fail none'}
for line in sys.stdin:
    job = json.loads(line)
    author = job['author'].encode()
    one = lib.opendmarc_policy_connect_init(b'192.0.2.1', 4)
    lib.opendmarc_policy_store_from_domain(one, author)
    for domain in job['dkim']:
        lib.opendmarc_policy_store_dkim(one, domain.encode(), None, PASS, None)
    if job['spf']:
        lib.opendmarc_policy_store_spf(one, job['spf'].encode(), PASS, MAIL_FROM, None)
    if lib.opendmarc_policy_query_dmarc(one, author) == TEMPORARY:
        print('temperror', flush=True)
    else:
        print(VERDICTS.get(lib.opendmarc_get_policy_to_enforce(one), 'permerror'), flush=True)
    lib.opendmarc_policy_connect_shutdown(one)
`

/** Verdicts of others that are not ours, by what the vector is. */
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

const missing = !isInstalled(PYTHON, ['-c', "import ctypes; ctypes.CDLL('libopendmarc.so.2')"]) && 'no libopendmarc2'

t.test('oracle: OpenDMARC on the vectors of DMARC', { skip: missing }, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'sendwright-dmarc-'))
  writeFileSync(join(folder, 'suffixes'), 'example\n')
  const zone = await startZone()
  const peer = startLinePeer(PYTHON, ['-c', PYTHON_OPENDMARC, String(zone.port), join(folder, 'suffixes')])
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
    // It takes one author, and what holds or does not.
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
