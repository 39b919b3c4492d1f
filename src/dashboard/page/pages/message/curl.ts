/** curl - a message as the request that sends it again */
import type { Message } from '../../../../../schemas/message.ts'

/** The command. Its content is not in it: that is read by itself. */
export function curlOf({ from, recipients, subject, tag, metadata, streamId, test }: Message): string {
  const list = (kind: string) => recipients.filter((one) => one.kind === kind).map(({ recipient }) => recipient)
  const body = {
    from: from.name === null ? from.email : { email: from.email, name: from.name },
    to: list('to'),
    ...(list('cc').length > 0 && { cc: list('cc') }),
    ...(list('bcc').length > 0 && { bcc: list('bcc') }),
    subject,
    text: 'Hello',
    streamId,
    ...(tag !== null && { tag }),
    ...(Object.keys(metadata).length > 0 && { metadata }),
  }
  const key = test ? 'sk_test_...' : 'sk_...'
  return [
    `curl ${location.origin}/v1/email \\`,
    `  -H 'Authorization: Bearer ${key}' \\`,
    `  -H 'Content-Type: application/json' \\`,
    `  -d '${JSON.stringify(body).replaceAll("'", "'\\''")}'`,
  ].join('\n')
}
