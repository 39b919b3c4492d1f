/** tail - the events on a server, as they happen: states and codes, no content */
import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { gates } from '../api/call.ts'
import { formatMoment } from '../api/words.ts'
import { Card, Empty, Head } from '../parts/card.tsx'
import { Form } from '../parts/form.tsx'
import { ServerChoice } from './server-choice.tsx'

const LINES_MAX = 200

interface Line {
  readonly id: number
  readonly text: string
}

/** The page. Takes the server in its path, or ''. */
export function TailPage({ named = '' }: { readonly named?: string; readonly children?: ComponentChildren }) {
  const [serverId, setServerId] = useState(named)
  const [tailed, tail] = useState(named)
  return (
    <>
      <Head title="Tail" meta="New events of one server, as they happen." />
      <Card title="Server">
        <div class="inset">
          <Form act="Start" onSend={async () => tail(serverId.trim())}>
            <ServerChoice serverId={serverId} onChange={setServerId} />
          </Form>
        </div>
      </Card>
      {tailed !== '' && <Lines serverId={tailed} key={tailed} />}
    </>
  )
}

function Lines({ serverId }: { serverId: string }) {
  const [lines, setLines] = useState<readonly Line[]>([])
  const [state, setState] = useState('Connecting …')
  useEffect(() => {
    const gone = new AbortController()
    const add = (text: string) =>
      setLines((shown) => [{ id: (shown[0]?.id ?? 0) + 1, text }, ...shown].slice(0, LINES_MAX))
    follow(serverId, gone.signal, { add, say: setState }).catch(() => setState('The feed has ended'))
    return () => gone.abort()
  }, [serverId])
  return (
    <Card title="Events" side={state}>
      {lines.length === 0 ? (
        <Empty icon="clock" title="Nothing has happened yet" />
      ) : (
        <ol class="tail">
          {lines.map(({ id, text }) => (
            <li key={id}>{text}</li>
          ))}
        </ol>
      )}
    </Card>
  )
}

interface Hearer {
  readonly add: (text: string) => void
  readonly say: (state: string) => void
}

/** Reads the feed. `EventSource` sends no key, so it is read by hand (WHATWG HTML 9.2.6, as far as the feed goes). */
async function follow(serverId: string, signal: AbortSignal, { add, say }: Hearer): Promise<void> {
  const headers = { Authorization: gates.authorization() ?? '' }
  const response = await fetch(`${gates.base}/servers/${serverId}/events`, { headers, signal })
  if (!response.ok || response.body === null) {
    say(response.status === 404 ? 'There is no such server' : `Answered ${response.status}`)
    return
  }
  say('Listening')
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ''
  for (;;) {
    const { done, value } = await reader.read()
    if (done) break
    const pieces = (rest + value).split('\n\n')
    rest = pieces.pop() ?? ''
    for (const piece of pieces) {
      const data = piece.split('\n').flatMap((line) => (line.startsWith('data:') ? [line.slice(5).trim()] : []))
      if (data.length > 0) add(`${formatMoment(new Date().toISOString())}  ${data.join(' ')}`)
    }
  }
  say('The feed has ended')
}
