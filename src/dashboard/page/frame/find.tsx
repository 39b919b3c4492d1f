/** find - the search (Ctrl K) for names, addresses, ids, tags, pages and actions */
import { signal } from '@preact/signals'
import { useEffect, useRef, useState } from 'preact/hooks'
import { useLocation } from 'wouter-preact'
import type { Found } from '../../../../schemas/dashboard/account.ts'
import { call } from '../api/call.ts'
import { messagesPath, serverPath } from '../api/place.ts'
import { servers } from '../api/session.ts'
import { currentServer } from '../browser/current-server.ts'
import { ADDRESS } from '../parts/filters.tsx'
import { Icon, type IconName } from '../parts/icon.tsx'
import { namedWays, names, readNames, type Way } from './find-items.ts'
import { PAGES } from './pages.tsx'

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i
const isOpen = signal(false)

/** Opens the search. */
export function openFinder(): void {
  isOpen.value = true
}

/** The search, if it is open. */
export function Finder() {
  useEffect(() => {
    const listen = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey)) return
      event.preventDefault()
      openFinder()
    }
    addEventListener('keydown', listen)
    return () => removeEventListener('keydown', listen)
  }, [])
  return isOpen.value ? <Open /> : null
}

function Open() {
  const dialog = useRef<HTMLDialogElement>(null)
  const [text, setText] = useState('')
  const [chosen, choose] = useState(0)
  const [found, setFound] = useState<Way | null>(null)
  const [path, go] = useLocation()
  useEffect(() => {
    dialog.current?.showModal()
    const server = currentServer(path)
    if (server !== null) readNames(server.serverId)
  }, [])
  // Read when the names arrive.
  void names.value
  useEffect(() => {
    setFound(null)
    if (!UUID.test(text.trim())) return
    const gone = new AbortController()
    call<Found>('POST', '/find', { body: { text: text.trim() }, signal: gone.signal }).then(
      (answer) => setFound(wayTo(answer)),
      () => undefined,
    )
    return () => gone.abort()
  }, [text])
  const ways = [...(found === null ? [] : [found]), ...findWays(text.trim(), path)]
  const close = () => {
    isOpen.value = false
  }
  const follow = (way: Way | undefined) => {
    if (way === undefined) return
    close()
    go(way.href, way.state === undefined ? {} : { state: way.state })
  }
  const press = (event: KeyboardEvent) => {
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0
    if (step !== 0) choose((chosen + step + ways.length) % Math.max(1, ways.length))
    else if (event.key === 'Enter') follow(ways[chosen])
    else return
    event.preventDefault()
  }
  return (
    <dialog ref={dialog} class="finder" aria-label="Find" onClose={close} onCancel={close}>
      <div class="finder-field">
        <Icon name="search" />
        <input
          type="text"
          value={text}
          placeholder="Name, address, id or action"
          aria-label="Name, address, id or action"
          role="combobox"
          aria-expanded="true"
          aria-controls="ways"
          aria-activedescendant={ways.length > 0 ? `way-${chosen}` : undefined}
          onInput={(event) => {
            setText(event.currentTarget.value)
            choose(0)
          }}
          onKeyDown={press}
        />
        <kbd>Esc</kbd>
      </div>
      <Ways ways={ways} chosen={chosen} onFollow={follow} />
    </dialog>
  )
}

function Ways({ ways, chosen, onFollow }: { ways: readonly Way[]; chosen: number; onFollow: (way: Way) => void }) {
  return (
    <div id="ways" role="listbox" aria-label="What was found">
      {ways.map((way, at) => (
        <button
          type="button"
          role="option"
          tabIndex={-1}
          id={`way-${at}`}
          key={`${way.href} ${way.word} ${way.hint}`}
          aria-selected={at === chosen}
          onClick={() => onFollow(way)}
        >
          <Icon name={way.icon} />
          <span>{way.word}</span>
          <small>{way.hint}</small>
        </button>
      ))}
      {ways.length === 0 && (
        <div role="option" tabIndex={-1} aria-selected="false">
          No item in the account has that id.
        </div>
      )}
    </div>
  )
}

/** The possible meanings of a text on the shown server. */
function findWays(text: string, path: string): Way[] {
  const server = currentServer(path)
  const named = namedWays(text, path)
  if (text === '' || server === null || UUID.test(text)) return named
  const href = serverPath(server.serverId, 'messages')
  const hint = `on ${server.name}`
  const to: Way = { word: `Mail to ${text}`, hint, icon: 'mail', href, state: { filters: { recipient: text } } }
  if (ADDRESS.test(text))
    return [to, { word: `Mail from ${text}`, hint, icon: 'send', href, state: { filters: { from: text } } }, ...named]
  return [
    ...named,
    to,
    { word: `Subject with ${text}`, hint, icon: 'search', href, state: { filters: { subject: text } } },
    { word: `Messages tagged ${text}`, hint, icon: 'mail', href: messagesPath(server.serverId, { tag: text }) },
  ]
}

const PLACES: Readonly<Record<string, readonly [pattern: string, word: string, icon: IconName]>> = {
  message: ['/servers/:serverId/messages/:id', 'Message', 'mail'],
  received: ['/servers/:serverId/received/:id', 'Received message', 'inbox'],
  server: ['/servers/:id/messages', 'Server', 'server'],
  stream: ['/servers/:serverId/streams', 'Stream', 'streams'],
  domain: ['/domains/:id', 'Domain', 'globe'],
  webhook: ['/servers/:serverId/webhooks/:id', 'Webhook', 'webhook'],
  broadcast: ['/servers/:serverId/broadcasts/:id', 'Broadcast', 'broadcast'],
  suppression: ['/servers/:serverId/suppressions', 'Suppression', 'shield'],
}

function wayTo({ kind, id, serverId }: Found): Way | null {
  const place = PLACES[kind ?? '']
  if (place === undefined || id === null) return null
  const [pattern, word, icon] = place
  if (!PAGES.some(({ path }) => path === pattern.replace('/:id/messages', '/:serverId/messages'))) return null
  const name = servers.value?.find((one) => one.serverId === serverId)?.name ?? 'account'
  return { word, hint: name, icon, href: pattern.replace(':serverId', serverId ?? '').replace(':id', id) }
}
