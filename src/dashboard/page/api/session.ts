/** session - who is signed in, into which account, and its servers */
import { computed, signal } from '@preact/signals'
import type { SignedIn } from '../../../../schemas/dashboard/session.ts'
import type { Server } from '../../../../schemas/server.ts'
import { ApiError, call, gates } from './call.ts'
import { ENTERED, placeOf, tellEntered } from './entered.ts'

/** Null until it is known. */
export const session = signal<SignedIn | null>(null)
/** Null until they are known. */
export const servers = signal<readonly Server[] | null>(null)

/** The permissions of a user. */
export type Right = 'write' | 'administer'

export const isAdministrator = computed(() => session.value?.role === 'administrator')
const mayWrite = computed(() => isAdministrator.value || session.value?.readOnly === false)

/** The user's permissions: `write` for those of a member, `administer` for those of administrators only. */
export function may(right: Right): boolean {
  return right === 'administer' ? isAdministrator.value : mayWrite.value
}

const DOOR = '/dashboard/sign-in'
const PAGES_OF_SERVERS_MAX = 10

/** Reads session and servers. Without one the user is sent to the sign-in page. */
export async function openSession(): Promise<void> {
  gates.signedOut = toDoor
  addEventListener('storage', ({ key, newValue }) => {
    if (key === ENTERED && !isOfSession(newValue)) location.assign(HOME)
  })
  const [read] = await Promise.all([call<SignedIn>('GET', '/session'), readServers().catch(beforeFactor)])
  session.value = read
}

/** A user who has yet to set up a second factor sees no server. */
function beforeFactor(fault: unknown): void {
  if (!(fault instanceof ApiError) || fault.code !== 'second_factor_required') throw fault
  servers.value = []
}

/** Reads the session again, because the role may have changed. */
export async function readSession(): Promise<void> {
  session.value = await call<SignedIn>('GET', '/session')
}

/** Reads the account's servers again. */
export async function readServers(): Promise<void> {
  const found: Server[] = []
  let after = ''
  for (let pages = 0; pages < PAGES_OF_SERVERS_MAX; pages += 1) {
    const page = await call<{ servers: Server[]; next: string | null }>('GET', `/servers?limit=100${after}`)
    found.push(...page.servers)
    if (page.next === null) break
    after = `&after=${page.next}`
  }
  servers.value = found
}

function toDoor(): void {
  const here = location.pathname + location.search
  sessionStorage.setItem('next', here)
  location.replace(DOOR)
}

const HOME = '/dashboard/'

/** Whether a notification of another tab is about the shown session. */
function isOfSession(told: string | null): boolean {
  const { value } = session
  return value !== null && told?.split(' ')[0] === placeOf(value)
}

/** Switches to another account of the user. Everything shown belongs to one account, so the page is loaded again. */
export async function switchAccount(accountId: string): Promise<void> {
  tellEntered(await call<SignedIn>('POST', '/session/account', { body: { accountId } }))
  location.assign(HOME)
}

/** Ends the session. Throws ApiError if it is still active, because the user must know. */
export async function signOut(): Promise<void> {
  await call('DELETE', '/session')
  sessionStorage.removeItem('next')
  location.replace(DOOR)
}

/** A server by its id; null if it is not in this account. */
export function findServer(serverId: string): Server | null {
  return servers.value?.find((one) => one.serverId === serverId) ?? null
}
