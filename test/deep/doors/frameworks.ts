/**
 * frameworks - mail libraries of others, whose host and key are all that changes, against a running service: Symfony
 * Mailer by its bridges to Postmark and Mailgun, django-anymail by both, and the gem that Rails uses for Postmark.
 *
 * A library that is not installed skips its test, and says so. Debian's Laravel (8.83) has no transport for Postmark.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { createServer } from 'node:tls'
import t, { type Test } from 'tap'
import { freePort } from '../../support/machine/port.ts'
import { makeSelfSigned } from '../../support/peers/self-signed.ts'
import { startTestService } from '../../support/service/service.ts'

const SECONDS_MAX = 120
/** Debian's, which has its packages, also if another one is first in PATH. */
const PYTHON = existsSync('/usr/bin/python3') ? '/usr/bin/python3' : 'python3'
const service = await startTestService()
const { token } = service.firstRun.testServer
const { httpPort } = service.config
const pair = makeSelfSigned()
const tlsPort = await freePort()
/** Symfony's bridges speak TLS only. */
const front =
  pair === null
    ? null
    : createServer({ key: pair.key, cert: pair.cert }, (socket) => {
        const inner = connect(httpPort, '127.0.0.1')
        socket.on('error', () => inner.destroy())
        inner.on('error', () => socket.destroy())
        socket.pipe(inner).pipe(socket)
      })
front?.listen(tlsPort, '127.0.0.1')
t.teardown(async () => {
  front?.close()
  await service.stop()
})
const env = { ...process.env, TOKEN: token, HTTP_PORT: String(httpPort), TLS_PORT: String(tlsPort) }

/** Whether a command succeeds, so that what it loads is installed. */
const loads = (command: string, args: readonly string[]): boolean =>
  spawnSync(command, args, { stdio: 'ignore', timeout: 60_000 }).status === 0

interface Done {
  readonly name: string
  readonly id?: string
  readonly error?: string
}

/** Runs a program, which prints a line of JSON for each message. */
async function run(command: string, args: readonly string[]): Promise<Map<string, Done>> {
  const child = spawn(command, args, { env, timeout: SECONDS_MAX * 1000 })
  const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  if (code !== 0) throw new Error(`${command} ended with ${code}: ${err.slice(-2_000)}${out.slice(-1_000)}`)
  const lines = out.split('\n').filter((line) => line.startsWith('{'))
  return new Map(lines.map((line) => JSON.parse(line) as Done).map((done) => [done.name, done]))
}

/** The message behind an id of either provider. */
async function read({ id, error }: Done = { name: '' }) {
  const [messageId] = /[0-9a-f-]{36}/.exec(id ?? '') ?? []
  if (messageId === undefined) throw new Error(`No id: ${id ?? error}`)
  const { json } = await service.call(`GET /v1/messages/${messageId}`, { token })
  return json
}

/** The same message through each library. */
const RICH = {
  subject: 'Grüße',
  text: 'Hello',
  html: '<p>Hello</p><img src="cid:logo.png">',
  from: { email: 'shop@simulator.test', name: 'Acme, Inc' },
  headers: { 'X-Campaign': '7' },
  tag: 'welcome',
  attachments: [
    { name: 'rechnung-ü.pdf', contentType: 'application/pdf' },
    { name: 'logo.png', contentType: 'image/png' },
  ],
}

async function isRich(t: Test, done: Done | undefined): Promise<void> {
  const message = await read(done)
  t.match(message, RICH)
  t.equal(message.metadata.order, '42')
  const kinds = message.recipients.map(({ recipient, kind }: { recipient: string; kind: string }) => [recipient, kind])
  t.same(kinds.toSorted(), [
    ['delivered+b@simulator.test', 'bcc'],
    ['delivered+c@simulator.test', 'cc'],
    ['delivered+t@simulator.test', 'to'],
  ])
}

const SYMFONY = `<?php
require '/usr/share/php/Symfony/Component/Mailer/autoload.php';
require '/usr/share/php/Symfony/Component/HttpClient/autoload.php';
require '/usr/share/php/Symfony/Component/Mailer/Bridge/Postmark/autoload.php';
require '/usr/share/php/Symfony/Component/Mailer/Bridge/Mailgun/autoload.php';
use Symfony\\Component\\HttpClient\\HttpClient;
use Symfony\\Component\\Mailer\\Bridge\\Mailgun\\Transport\\MailgunApiTransport;
use Symfony\\Component\\Mailer\\Bridge\\Postmark\\Transport\\PostmarkApiTransport;
use Symfony\\Component\\Mailer\\Header\\MetadataHeader;
use Symfony\\Component\\Mailer\\Header\\TagHeader;
use Symfony\\Component\\Mime\\Address;
use Symfony\\Component\\Mime\\Email;
$client = HttpClient::create(['verify_peer' => false, 'verify_host' => false]);
$open = fn($transport) => $transport->setHost('127.0.0.1')->setPort((int) getenv('TLS_PORT'));
$transports = [
  'postmark' => fn($key) => $open(new PostmarkApiTransport($key, $client)),
  'mailgun' => fn($key) => $open(new MailgunApiTransport($key, 'simulator.test', null, $client)),
];
function send($name, $transport, $email) {
  try { $done = ['id' => $transport->send($email)->getMessageId()]; }
  catch (Throwable $error) { $done = ['error' => get_class($error) . ': ' . $error->getMessage()]; }
  echo json_encode(['name' => $name] + $done), "\\n";
}
$plain = fn() => (new Email())->from('shop@simulator.test')->to('delivered@simulator.test')->subject('Hi')->text('Hi');
foreach ($transports as $door => $make) {
  $transport = $make(getenv('TOKEN'));
  send("$door plain", $transport, $plain());
  $rich = (new Email())->from(new Address('shop@simulator.test', 'Acme, Inc'))->to('delivered+t@simulator.test')
    ->cc('delivered+c@simulator.test')->bcc('delivered+b@simulator.test')->replyTo('help@example.com')
    ->subject('Grüße')->text('Hello')->html('<p>Hello</p><img src="cid:logo.png">')
    ->attach('%PDF-1.4', 'rechnung-ü.pdf', 'application/pdf')->embed('PNG', 'logo.png', 'image/png');
  $rich->getHeaders()->addTextHeader('X-Campaign', '7');
  $rich->getHeaders()->add(new TagHeader('welcome'));
  $rich->getHeaders()->add(new MetadataHeader('order', '42'));
  send("$door rich", $transport, $rich);
  send("$door many", $transport, $plain()->attach('a', 'a.txt')->attach('b', 'b.txt')->attach(str_repeat('x', 2000000), 'c.bin'));
  send("$door html", $transport, (new Email())->from('shop@simulator.test')->to(new Address('delivered@simulator.test', 'Łukasz'))->subject('Hi')->html('<p>Hi</p>'));
  send("$door domain", $transport, $plain()->from('shop@elsewhere.example'));
  send("$door key", $make('sk_test_wrong'), $plain());
}
`

t.test('frameworks: Symfony Mailer sends through both doors [doors.clients]', async (t) => {
  const load = "require '/usr/share/php/Symfony/Component/Mailer/Bridge/Mailgun/autoload.php'; new CURLFile('');"
  const bridge = "require '/usr/share/php/Symfony/Component/Mailer/Bridge/Postmark/autoload.php';"
  if (front === null || !loads('php', ['-r', `${load}${bridge}`]))
    return t.pass('php-symfony-postmark-mailer, php-symfony-mailgun-mailer, php-curl or openssl: not installed', {
      skip: true,
    })
  const done = await run('php', ['-r', SYMFONY.replace('<?php\n', '')])
  t.equal(done.size, 12)
  for (const door of ['postmark', 'mailgun']) {
    t.match(await read(done.get(`${door} plain`)), { subject: 'Hi', text: 'Hi', html: null })
    await isRich(t, done.get(`${door} rich`))
    t.match(await read(done.get(`${door} many`)), {
      attachments: [{ name: 'a.txt' }, { name: 'b.txt' }, { name: 'c.bin', size: 2_000_000 }],
    })
    t.match(await read(done.get(`${door} html`)), { text: null, html: '<p>Hi</p>', recipients: [{ name: 'Łukasz' }] })
    t.match(done.get(`${door} domain`)?.error, /HttpTransportException: Unable to send an email: .+ \(code \d+\)/)
    t.match(done.get(`${door} key`)?.error, /HttpTransportException: Unable to send an email: .+ \(code \d+\)/)
  }
})

const ANYMAIL = `
import json, os
from django.conf import settings
url = 'http://127.0.0.1:' + os.environ['HTTP_PORT']
settings.configure(DEFAULT_CHARSET='utf-8', USE_TZ=True, ANYMAIL={
  'POSTMARK_API_URL': url + '/', 'POSTMARK_SERVER_TOKEN': os.environ['TOKEN'],
  'MAILGUN_API_URL': url + '/v3', 'MAILGUN_API_KEY': os.environ['TOKEN'],
})
import django
django.setup()
from django.core.mail import get_connection
from anymail.message import AnymailMessage, attach_inline_image
def message(door, **more):
  fields = dict(subject='Hi', body='Hi', from_email='shop@simulator.test', to=['delivered@simulator.test'])
  return AnymailMessage(connection=get_connection('anymail.backends.%s.EmailBackend' % door), **{**fields, **more})
def send(name, one):
  try:
    one.send()
    done = {'id': one.anymail_status.message_id if isinstance(one.anymail_status.message_id, str) else str(one.anymail_status.message_id)}
    done['status'] = sorted(one.anymail_status.status)
  except Exception as error:
    done = {'error': '%s: %s' % (type(error).__name__, error)}
  print(json.dumps({'name': name, **done}))
for door in ('postmark', 'mailgun'):
  send(door + ' plain', message(door))
  rich = message(door, subject='Grüße', body='Hello', from_email='"Acme, Inc" <shop@simulator.test>',
    to=['delivered+t@simulator.test'], cc=['delivered+c@simulator.test'], bcc=['delivered+b@simulator.test'],
    reply_to=['help@example.com'], headers={'X-Campaign': '7'})
  rich.attach('rechnung-ü.pdf', b'%PDF-1.4', 'application/pdf')
  rich.attach_alternative('<p>Hello</p><img src="cid:logo.png">', 'text/html')
  rich.tags = ['welcome']
  rich.metadata = {'order': '42'}
  inline = message(door)
  cid = attach_inline_image(inline, b'PNG', filename='logo.png', subtype='png')
  inline.attach_alternative('<img src="cid:%s">' % cid, 'text/html')
  send(door + ' rich', rich)
  send(door + ' inline', inline)
  send(door + ' domain', message(door, from_email='shop@elsewhere.example'))
  wrong = message(door)
  wrong.connection = get_connection('anymail.backends.%s.EmailBackend' % door, **{'server_token' if door == 'postmark' else 'api_key': 'sk_test_wrong'})
  send(door + ' key', wrong)
template = message('postmark')
template.template_id = 'welcome'
send('postmark template', template)
`

t.test('frameworks: django-anymail sends through both doors [doors.clients]', async (t) => {
  if (!loads(PYTHON, ['-c', 'import anymail, django, requests']))
    return t.pass('python3-django-anymail is not installed', { skip: true })
  const done = await run(PYTHON, ['-c', ANYMAIL])
  t.equal(done.size, 11)
  for (const door of ['postmark', 'mailgun']) {
    t.match(await read(done.get(`${door} plain`)), { subject: 'Hi', text: 'Hi' })
    t.match(await read(done.get(`${door} rich`)), {
      ...RICH,
      attachments: [RICH.attachments[0]],
      recipients: { length: 3 },
      metadata: { order: '42' },
    })
    t.match(await read(done.get(`${door} inline`)), {
      attachments: [{ contentType: 'image/png', inline: true }],
      html: /cid:/,
    })
    t.match(done.get(`${door} domain`)?.error, /^AnymailRequestsAPIError|^AnymailRecipientsRefused/)
    t.match(done.get(`${door} key`)?.error, /^AnymailRequestsAPIError: /)
  }
  t.match(done.get('postmark template')?.error, /^AnymailRequestsAPIError: .*Templates are not offered/s)
})

const GEM = `
require 'postmark'
require 'json'
options = { host: '127.0.0.1', port: ENV['HTTP_PORT'].to_i, secure: false }
client = Postmark::ApiClient.new(ENV['TOKEN'], **options)
def send(name)
  done = begin
    { id: yield[:message_id] }
  rescue StandardError => error
    { error: error.class.name + ': ' + error.message }
  end
  puts JSON.generate({ name: name, **done })
end
plain = { from: 'shop@simulator.test', to: 'delivered@simulator.test', subject: 'Hi', text_body: 'Hi' }
pdf = { name: 'rechnung-ü.pdf', content: ['%PDF-1.4'].pack('m0'), content_type: 'application/pdf' }
png = { name: 'logo.png', content: ['PNG'].pack('m0'), content_type: 'image/png', 'ContentID' => 'cid:logo.png' }
send('plain') { client.deliver(plain) }
send('rich') do
  client.deliver(from: '"Acme, Inc" <shop@simulator.test>', to: 'delivered+t@simulator.test',
    cc: 'delivered+c@simulator.test', bcc: 'delivered+b@simulator.test', reply_to: 'help@example.com',
    subject: 'Grüße', text_body: 'Hello', html_body: '<p>Hello</p><img src="cid:logo.png">', tag: 'welcome',
    metadata: { order: '42' }, headers: [{ name: 'X-Campaign', value: '7' }], attachments: [pdf, png])
end
send('batch') { client.deliver_in_batches([plain, plain]).last }
send('domain') { client.deliver(plain.merge(from: 'shop@elsewhere.example')) }
send('key') { Postmark::ApiClient.new('sk_test_wrong', **options).deliver(plain) }
send('template') { client.deliver_with_template(from: 'shop@simulator.test', to: 'a@simulator.test', template_id: 1) }
send('server') { { message_id: client.server_info[:name] } }
`

t.test('frameworks: the gem of Rails sends through the door of Postmark [doors.clients]', async (t) => {
  if (!loads('ruby', ['-e', "require 'postmark'"])) return t.pass('ruby-postmark is not installed', { skip: true })
  const done = await run('ruby', ['-e', GEM])
  t.equal(done.size, 7)
  t.match(await read(done.get('plain')), { subject: 'Hi', text: 'Hi' })
  await isRich(t, done.get('rich'))
  t.match(await read(done.get('batch')), { subject: 'Hi' })
  t.match(done.get('domain')?.error, /^Postmark::\w+Error: /)
  t.match(done.get('key')?.error, /^Postmark::InvalidApiKeyError: /)
  t.match(done.get('template')?.error, /^Postmark::\w+Error: Templates are not offered/)
  t.type(done.get('server')?.id, 'string')
})
