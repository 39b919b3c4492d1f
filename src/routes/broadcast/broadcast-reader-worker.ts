/** broadcast-reader-worker - reads broadcasts, from UTF-8 to the stored form, or to the issues */

import { makeHashes } from '../../process/secrets.ts'
import { serveJobs } from '../../process/serve-jobs.ts'
import { parseBroadcast, parsePreview, type ReadJob } from './read.ts'

serveJobs(({ pieces, hashKeys, accountId, serverId, isPreview }: ReadJob) => {
  const bytes = pieces.map((piece) => Buffer.from(piece))
  if (isPreview) return parsePreview(bytes)
  const secrets = makeHashes(hashKeys)
  return parseBroadcast(bytes, {
    addressHmac: (address) => secrets.addressHmac(accountId, address),
    tagHash: (tag) => secrets.tagHash(serverId, tag),
  })
})
