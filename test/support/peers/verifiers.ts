/**
 * verifiers - verifiers of mail that are not ours, as Debian has them, each a program that answers a line of JSON with
 * a verdict
 *
 * Those that ask the DNS ask a server on the loopback, whose port is their last argument.
 */
import { isInstalled } from './line-peer.ts'

/** Where Debian puts its modules. */
const PYTHON = '/usr/bin/python3'

export interface Verifier {
  readonly name: string
  /** The reason why it cannot be used here; false if it can. */
  readonly missing: string | false
  readonly program: string
  readonly args: readonly string[]
}

/** In: lines of JSON `{raw, zone}`. Returns a verdict for each. */
const DKIMPY_SCRIPT = `
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
const MAIL_DKIM_SCRIPT = `
use strict; use warnings; use JSON::PP; use MIME::Base64; use Net::DNS::Resolver; use Mail::DKIM::Verifier; $| = 1;
my $resolver = Net::DNS::Resolver->new(nameservers => ['127.0.0.1'], port => $ARGV[0], recurse => 0, udp_timeout => 1, retry => 1);
Mail::DKIM::DNS::resolver($resolver);
while (my $line = <STDIN>) {
  my $raw = decode_base64(decode_json($line)->{raw});
  my $verdict = eval { my $dkim = Mail::DKIM::Verifier->new(); $dkim->PRINT($raw); $dkim->CLOSE(); $dkim->result } // 'error';
  print(($verdict eq 'pass' ? 'pass' : 'fail'), "\\n");
}
`

/** In: lines of JSON `{ip, sender, helo}`; `sender` may be empty. Returns a verdict for each. */
const PYSPF_SCRIPT = `
import sys, json, dns.resolver, spf
resolver = dns.resolver.Resolver(configure=False)
resolver.nameservers, resolver.port = ['127.0.0.1'], int(sys.argv[1])
dns.resolver.default_resolver = resolver
spf.DNSLookup = spf.DNSLookup_dnspython
for line in sys.stdin:
    job = json.loads(line)
    try:
        verdict = spf.check2(i=job['ip'], s=job['sender'], h=job['helo'])[0]
    except Exception as error:
        verdict = 'throws ' + type(error).__name__
    print(verdict, flush=True)
`
const MAIL_SPF_SCRIPT = `
use strict; use warnings; use JSON::PP; use Net::DNS::Resolver; use Mail::SPF; $| = 1;
my $resolver = Net::DNS::Resolver->new(nameservers => ['127.0.0.1'], port => $ARGV[0], recurse => 0, udp_timeout => 2, retry => 1);
my $server = Mail::SPF::Server->new(dns_resolver => $resolver, query_rr_types => Mail::SPF::Server->query_rr_type_txt);
while (my $line = <STDIN>) {
  my $job = decode_json($line);
  my $verdict = eval {
    my %who = $job->{sender} eq ''
      ? (scope => 'helo', identity => $job->{helo})
      : (scope => 'mfrom', identity => $job->{sender}, helo_identity => $job->{helo});
    $server->process(Mail::SPF::Request->new(versions => [1], ip_address => $job->{ip}, %who))->code
  } // 'throws';
  print "$verdict\\n";
}
`

/** `OPENDMARC_LIB_T` of its header: a kind, a path of PATH_MAX bytes, a count and three addresses. */
/** In: lines of JSON `{author, dkim, spf}`: domains whose signature holds, and that of MAIL FROM or ''. */
const OPENDMARC_SCRIPT = `
import sys, json, ctypes, socket
lib = ctypes.CDLL('libopendmarc.so.2')
class Address(ctypes.Structure):
    _fields_ = [('family', ctypes.c_ushort), ('port', ctypes.c_uint16), ('host', ctypes.c_ubyte * 4), ('rest', ctypes.c_ubyte * 8)]
class Settings(ctypes.Structure):
    _fields_ = [('kind', ctypes.c_int), ('suffixes', ctypes.c_char * 4096), ('count', ctypes.c_int), ('servers', Address * 3)]
settings = Settings(kind=1, suffixes=sys.argv[1].encode(), count=1)
settings.servers[0] = Address(socket.AF_INET, socket.htons(int(sys.argv[2])), (127, 0, 0, 1))
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

const noDkimpy = !isInstalled(PYTHON, ['-c', 'import dkim']) && 'no python3-dkim'
const dkimpy = (kind: 'dkim' | 'arc'): Verifier => ({
  name: 'dkimpy',
  missing: noDkimpy,
  program: PYTHON,
  args: ['-c', DKIMPY_SCRIPT, kind],
})

export const DKIMPY = dkimpy('dkim')
export const DKIMPY_ARC = dkimpy('arc')
export const MAIL_DKIM: Verifier = {
  name: 'Mail::DKIM',
  missing:
    !isInstalled('perl', ['-MMail::DKIM::Verifier', '-MNet::DNS', '-MJSON::PP', '-e', '1']) && 'no libmail-dkim-perl',
  program: 'perl',
  args: ['-e', MAIL_DKIM_SCRIPT],
}
export const PYSPF: Verifier = {
  name: 'pyspf',
  missing: !isInstalled(PYTHON, ['-c', 'import spf, dns.resolver']) && 'no python3-spf',
  program: PYTHON,
  args: ['-c', PYSPF_SCRIPT],
}
export const MAIL_SPF: Verifier = {
  name: 'Mail::SPF',
  // Without the library for names beyond ASCII it cannot look such a domain up.
  missing:
    !isInstalled('perl', ['-MMail::SPF', '-MNet::LibIDN2', '-MJSON::PP', '-e', '1']) &&
    'no libmail-spf-perl with libnet-libidn2-perl',
  program: 'perl',
  args: ['-e', MAIL_SPF_SCRIPT],
}
/** Its arguments: a file of public suffixes, then the port. */
export const OPENDMARC: Verifier = {
  name: 'OpenDMARC',
  missing: !isInstalled(PYTHON, ['-c', "import ctypes; ctypes.CDLL('libopendmarc.so.2')"]) && 'no libopendmarc2',
  program: PYTHON,
  args: ['-c', OPENDMARC_SCRIPT],
}
