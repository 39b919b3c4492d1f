/** content-readers - how routes read the content of sent messages back: texts, files, and the message as it goes out */

import { makeLinkChecker } from '../checks/check-links.ts'
import type { Resolver } from '../dns/resolve.ts'
import { makeComposeAgain } from '../outbound/compose-again.ts'
import type { NameDeps } from '../outbound/mail-input.ts'
import { makeSigningKeyFinder } from '../outbound/signing-keys.ts'
import type { SigningKey } from '../outbound/thread/sign.ts'
import type { MailRoom, SmtpChanges } from '../outbound/threads.ts'
import type { Config } from '../process/config.ts'
import { monotonicMs } from '../process/fence.ts'
import type { Secrets } from '../process/secrets.ts'
import type { Parsing } from '../reception/open-parsing.ts'
import { ContentBytes } from '../routes/content/content-bytes.ts'
import { type OutgoingStore, readBody, readFiles } from '../store/outgoing.ts'
import { makeReader } from '../views/key.ts'
import type { RouteDeps } from './handlers.ts'

type ContentReaders = Pick<
  RouteDeps,
  'readBody' | 'readFiles' | 'readSubmitted' | 'contentBytes' | 'composeAgain' | 'linkChecker'
>

interface ReadersInput {
  readonly config: Config
  readonly secrets: Secrets
  readonly store: Parameters<typeof makeReader>[0]
  readonly outgoing: OutgoingStore
  readonly serviceKey: SigningKey | null
  readonly mailRoom: MailRoom
  readonly parsing: Parsing
  readonly resolver: Resolver
  /** Authorities of web servers to trust in place of the system's. */
  readonly smtp: SmtpChanges
}

/** Makes the readers. Takes the parts of the service and the store's time in ms. */
export function makeContentReaders(parts: ReadersInput, nowMs: () => number): ContentReaders {
  const { config, outgoing, secrets, serviceKey, mailRoom } = parts
  return {
    readBody: (place) => readBody(outgoing, place),
    readFiles: (place) => readFiles(outgoing, place),
    readSubmitted: parts.parsing.readSubmitted,
    contentBytes: new ContentBytes(),
    linkChecker: makeLinkChecker({
      resolver: parts.resolver,
      privateNetworksAllowed: config.privateNetworksAllowed,
      ca: parts.smtp.ca ?? null,
      baseUrl: config.baseUrl,
      nowMs: monotonicMs,
    }),
    composeAgain: makeComposeAgain({
      outgoing,
      ...namesOf(config, secrets),
      findKey: makeSigningKeyFinder(makeReader(parts.store), secrets.ring),
      serviceKey,
      compose: mailRoom.compose,
      nowMs,
    }),
  }
}

/** The names that the service writes into messages. */
export function namesOf({ baseUrl, smtpHostname }: Config, { tokenKey, addressHmac, senderId }: Secrets): NameDeps {
  return { tokenKey, addressHmac, baseUrl, senderId, smtpHostname }
}
