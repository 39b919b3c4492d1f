/** rotation-s3 - the secret is rotated while all content is in a bucket of a real S3 server (Swift). */
import { Redis } from 'ioredis'
import t from 'tap'
import { SWIFT_SKIP, startSwift } from '../../support/peers/swift.ts'
import { makeRotationRig } from '../../support/service/rotation-rig.ts'
import { secretInFile } from '../../support/service/secret-folder.ts'
import { startTestService } from '../../support/service/service.ts'

t.test('rotation: with content in a bucket [secret.rotate]', { skip: SWIFT_SKIP }, async (t) => {
  const swift = await startSwift()
  await swift.makeBucket('mail')
  const bucket = {
    CONTENT_STORE: 's3://mail/of/us',
    S3_ENDPOINT: swift.endpoint,
    S3_REGION: swift.region,
    S3_ACCESS_KEY_ID: swift.accessKeyId,
    S3_SECRET_ACCESS_KEY: swift.secretAccessKey,
  }
  const service = await startTestService({ ...secretInFile(), ...bucket }, { settlingMs: 2_000 })
  const redis = new Redis(service.redis.socketPath)
  t.teardown(async () => {
    redis.disconnect()
    await service.stop()
    swift.stop()
  })
  const rig = makeRotationRig(service, { redises: () => [redis], common: async () => redis })
  await rig.rotate(t)
})
