/** checks - what mail clients will drop of a message, what it lacks, and on a test server whether its links answer */
import { useState } from 'preact/hooks'
import type { Checks as CheckResult } from '../../../../../schemas/checks.ts'
import type { Message } from '../../../../../schemas/message.ts'
import { call } from '../../api/call.ts'
import { serverApi } from '../../api/place.ts'
import { Button } from '../../parts/button.tsx'

const RESULTS = { ok: 'Answers', broken: 'Broken', timeout: 'No answer', not_checked: 'Not checked' } as const

/** The view: nothing is checked until it is asked for. */
export function Checks({ message, serverId }: { message: Message; serverId: string }) {
  const [checks, setChecks] = useState<CheckResult | null>(null)
  const [hasLinks, setHasLinks] = useState(false)
  const run = async (links: boolean) => {
    setChecks(
      await call<CheckResult>('POST', serverApi(serverId, `/messages/${message.messageId}/checks`), {
        body: { links },
      }),
    )
    setHasLinks(links)
  }
  return (
    <>
      <div class="tools">
        <Button onPress={() => run(false)}>Check content</Button>
        {message.test && <Button onPress={() => run(true)}>Check content and links</Button>}
      </div>
      {checks !== null && <Findings of={checks} />}
      {checks !== null && hasLinks && <CheckedLinks of={checks} />}
    </>
  )
}

function Findings({ of: { findings } }: { of: CheckResult }) {
  if (findings.length === 0) return <p class="note">Nothing was found in the content.</p>
  return (
    <ul class="files padded" aria-label="Findings">
      {findings.map(({ message, line, url }) => (
        <li key={message}>
          {url === null ? (
            <span>{message}</span>
          ) : (
            <a href={url} target="_blank" rel="noreferrer">
              {message}
            </a>
          )}
          {line !== null && <small>line {line}</small>}
        </li>
      ))}
    </ul>
  )
}

function CheckedLinks({ of: { links } }: { of: CheckResult }) {
  if (links.length === 0) return <p class="note">The message has no links.</p>
  return (
    <ul class="files padded" aria-label="Links">
      {links.map(({ href, result, status, reason, part, line }) => (
        <li key={href}>
          <span>{href}</span>
          <small>
            {[RESULTS[result], status, reason].filter((one) => one !== null).join(', ')}, {part} line {line}
          </small>
        </li>
      ))}
    </ul>
  )
}
