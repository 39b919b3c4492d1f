/**
 * failure - how a command that could not do its work ends: sentences for a person, a body for `--json`, exit code 1.
 */

/** Thrown by commands, caught in one place (main.ts). Standard error gets the message. */
export class CommandFailure extends Error {
  /** Output of `--json`, the service's own answer if there is one. */
  readonly body: unknown

  constructor(message: string, body: unknown = { error: 'failed', message }) {
    super(message)
    this.name = 'CommandFailure'
    this.body = body
  }
}
