/**
 * sending - the limits of a tool's sends: to recipients that the command line allows, ten messages a minute, once for
 * each key
 *
 * A test server delivers to no one, so any recipient is allowed there.
 *
 * Spec mcp.send
 */
import type { Email, EmailAnswer, Sendwright } from '../../client/sendwright.ts'
import { CommandFailure } from '../console/failure.ts'

const SENDS_PER_MINUTE = 10
const MINUTE_MS = 60_000

export interface SendPolicy {
  readonly allowSend: boolean
  /** Addresses, and domains as `@example.com`, in lower case. */
  readonly recipients: readonly string[]
}

/** A mail from a tool, without headers and attachments. */
export interface ToolMail {
  readonly from: string
  readonly to: readonly string[]
  readonly cc?: readonly string[]
  readonly bcc?: readonly string[]
  readonly subject: string
  readonly text?: string
  readonly html?: string
  readonly tag?: string
  readonly idempotencyKey: string
}

/** Sends for tools. Takes the client, the allowed recipients, and a monotonic clock. */
export class ToolSender {
  readonly #client: Sendwright
  readonly #policy: SendPolicy
  readonly #nowMs: () => number
  /** When the sends of the last minute were. */
  #sentAtMs: readonly number[] = []

  constructor(client: Sendwright, policy: SendPolicy, nowMs: () => number) {
    this.#client = client
    this.#policy = policy
    this.#nowMs = nowMs
  }

  /** @throws CommandFailure if the mail is not allowed, ApiError if the service refuses it */
  async send({ idempotencyKey, ...mail }: ToolMail, isTest: boolean): Promise<EmailAnswer> {
    if (!isTest) this.#check([...mail.to, ...(mail.cc ?? []), ...(mail.bcc ?? [])])
    const nowMs = this.#nowMs()
    this.#sentAtMs = this.#sentAtMs.filter((atMs) => nowMs - atMs < MINUTE_MS)
    if (this.#sentAtMs.length >= SENDS_PER_MINUTE)
      throw new CommandFailure(`At most ${SENDS_PER_MINUTE} messages a minute: try again later`)
    this.#sentAtMs = [...this.#sentAtMs, nowMs]
    return await this.#client.send(mail as Email, { idempotencyKey })
  }

  #check(addresses: readonly string[]): void {
    const { allowSend, recipients } = this.#policy
    if (!allowSend) throw new CommandFailure('Sending on a live server is off: start the command with --allow-send')
    const isAllowed = (address: string) =>
      recipients.some((one) => one === address || (one.startsWith('@') && address.endsWith(one)))
    const refused = addresses.find((address) => !isAllowed(address.toLowerCase()))
    if (refused !== undefined) throw new CommandFailure(`Not an allowed recipient (--allow-recipient): ${refused}`)
  }
}
