/** secrets - made, sealed for their server, opened again, and by nobody else. */

import t from 'tap'
import { makeWebhookSecrets } from '../../src/webhooks/secrets.ts'
import { ringOf } from '../support/world/rings.ts'

const RING = ringOf('secret')

t.test('webhook secrets: opened again under the same key, for the same server [webhook.secrets]', async (t) => {
  const secrets = makeWebhookSecrets(RING)
  const made = [secrets.make('a'), secrets.make('a')]
  for (const { secret, sealed } of made) {
    t.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/)
    t.notOk(Buffer.from(sealed, 'base64').includes(secret.slice(6, 20)), 'nothing of it shows')
    t.equal(secrets.open('a', sealed), secret)
    t.equal(makeWebhookSecrets(RING).open('a', sealed), secret)
    t.throws(() => makeWebhookSecrets(RING).open('b', sealed), /cannot be decrypted/)
    t.throws(() => makeWebhookSecrets(ringOf('other')).open('a', sealed), /cannot be decrypted/)
  }
  t.not(made[0]?.secret, made[1]?.secret)
})
