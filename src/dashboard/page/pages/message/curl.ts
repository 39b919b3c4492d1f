/** curl - a message as the request that sends it again */
import type { MessageContent } from '../../../../../schemas/dashboard/content.ts'
import type { Message } from '../../../../../schemas/message.ts'

type Body = Pick<MessageContent, 'text' | 'html'>

/** The command. Takes the message and its content, or null if it is expired or hidden: then `text` is empty. */
export function formatCurl(message: Message, content: Body | null): string {
  const { from, recipients, subject, tag, metadata, headers, streamId, test } = message
  const list = (kind: string) =>
    recipients.filter((one) => one.kind === kind).map(({ recipient, name }) => addressOf(recipient, name))
  const [to, cc, bcc] = [list('to'), list('cc'), list('bcc')]
  const { text = '', html = null } = content ?? {}
  const body = {
    from: addressOf(from.email, from.name),
    to,
    ...(cc.length > 0 && { cc }),
    ...(bcc.length > 0 && { bcc }),
    subject,
    ...(text !== null && { text }),
    ...(html !== null && { html }),
    ...(Object.keys(headers).length > 0 && { headers }),
    streamId,
    ...(tag !== null && { tag }),
    ...(Object.keys(metadata).length > 0 && { metadata }),
  }
  const key = test ? 'sk_test_...' : 'sk_...'
  return [
    `curl ${location.origin}/v1/email \\`,
    `  -H 'Authorization: Bearer ${key}' \\`,
    `  -H 'Content-Type: application/json' \\`,
    // Within single quotes a shell changes nothing; a quote of the text ends and opens them again.
    `  -d '${JSON.stringify(body, null, 2).replaceAll("'", "'\\''")}'`,
  ].join('\n')
}

function addressOf(email: string, name: string | null): string | { readonly email: string; readonly name: string } {
  return name === null ? email : { email, name }
}
