/** secrets - made, sealed for their server, opened again, and by nobody else. */

import { randomBytes } from 'node:crypto'
import t from 'tap'
import { makeWebhookSecrets } from '../../src/webhooks/secrets.ts'

const KEY = randomBytes(32)

t.test('webhook secrets: opened again under the same key, for the same server [webhook.secrets]', async (t) => {
  const secrets = makeWebhookSecrets(KEY)
  const made = [secrets.make('a'), secrets.make('a')]
  for (const { secret, sealed } of made) {
    t.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/)
    t.notOk(Buffer.from(sealed, 'base64').includes(secret.slice(6, 20)), 'nothing of it shows')
    t.equal(secrets.open('a', sealed), secret)
    t.equal(makeWebhookSecrets(KEY).open('a', sealed), secret)
    t.throws(() => makeWebhookSecrets(KEY).open('b', sealed), /cannot be decrypted/)
    t.throws(() => makeWebhookSecrets(randomBytes(32)).open('a', sealed), /cannot be decrypted/)
  }
  t.not(made[0]?.secret, made[1]?.secret)
})
