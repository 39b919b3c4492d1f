/**
 * join - joins and removals at every step: all orders of their steps, and in each the process dies after any of them,
 * freezes for an hour between any two, or runs its checks twice. The account and the list of its user agree within the
 * hour.
 */
import t from 'tap'
import { makeIds } from '../../../cluster/id.ts'
import type { DashboardDeps } from '../../../src/dashboard/deps.ts'
import { leave } from '../../../src/dashboard/join.ts'
import { fieldsOfUser, USER_FIELDS } from '../../../src/state/dashboard/user.ts'
import { PeopleSteps } from '../../support/world/people-steps.ts'

/** The steps of the test with the most, so that a test that begins to repeat itself ends. */
const STEPS_MAX = 60

interface Scene {
  readonly memberOf: readonly ('one' | 'other')[]
  begin(steps: PeopleSteps): void
  /** The number of hours that pass in the middle of it. */
  readonly hours: number
}

/** The actions in a scene, one after the other: a step of a request by its place, or an hour. */
type Course = readonly (number | 'hour')[]

/** Runs a course, and returns the possible next actions. */
async function run({ memberOf, begin }: Scene, course: Course): Promise<{ steps: PeopleSteps; broken: string | null }> {
  const steps = new PeopleSteps(memberOf)
  begin(steps)
  let broken: string | null = null
  for (const one of course) {
    if (one === 'hour') await steps.anHour()
    else await steps.step(one)
    broken ??= brokenAt(steps)
  }
  return { steps, broken }
}

/** What must hold at every moment. */
function brokenAt({ accounts, memberOf, unsure }: PeopleSteps): string | null {
  if (memberOf.length > 0 && accounts === null) return 'a member is forgotten'
  return memberOf.some((one) => accounts?.includes(one) === false && !unsure.includes(one)) ? 'a member is lost' : null
}

/** What must hold once time has passed; returns the violation. */
async function brokenLater(steps: PeopleSteps): Promise<string | null> {
  await steps.anHour()
  const { accounts, memberOf, unsure, isKnown } = steps
  if (memberOf.length === 0) return accounts === null && !isKnown ? null : 'he is in no account, and stays'
  if (accounts === null || !isKnown) return 'a member is forgotten'
  if (unsure.length > 0) return 'it is unsure still'
  return [...accounts].sort().join() === [...memberOf].sort().join() ? null : `list ${accounts}, member of ${memberOf}`
}

/** Every course of a scene. Returns those after which something is broken, and the number of all. */
async function explore(scene: Scene): Promise<{ broken: string[]; courses: number }> {
  const broken: string[] = []
  const open: Course[] = [[]]
  const seen = new Set<string>()
  let courses = 0
  for (let course = open.pop(); course !== undefined; course = open.pop()) {
    const { steps, broken: meanwhile } = await run(scene, course)
    const { under, state } = steps
    const hours = course.filter((one) => one === 'hour').length
    if (seen.has(`${hours} ${state}`) && meanwhile === null) continue
    seen.add(`${hours} ${state}`)
    courses += 1
    if (course.length < STEPS_MAX) {
      for (const at of under) open.push([...course, at])
      if (hours < scene.hours && under.length > 0 && course.at(-1) !== 'hour') open.push([...course, 'hour'])
    }
    const what = meanwhile ?? (await brokenLater(steps))
    if (what !== null) broken.push(`${course.join(' ')}: ${what}`)
  }
  return { broken, courses }
}

const SCENES: Record<string, Scene> = {
  'who is new joins': { memberOf: [], begin: (steps) => steps.join(), hours: 2 },
  'who has an account joins another': { memberOf: ['other'], begin: (steps) => steps.join(), hours: 2 },
  'a member of one account is removed': { memberOf: ['one'], begin: (steps) => steps.remove(), hours: 2 },
  'a member of two is removed from one': { memberOf: ['one', 'other'], begin: (steps) => steps.remove(), hours: 2 },
  'two use one link at once': {
    memberOf: [],
    begin(steps) {
      const linkId = steps.makeLink()
      steps.join(linkId)
      steps.join(linkId)
    },
    hours: 0,
  },
  'two links are used at once': {
    memberOf: [],
    begin(steps) {
      steps.join()
      steps.join()
    },
    hours: 1,
  },
  'two remove at once': {
    memberOf: ['one'],
    begin(steps) {
      steps.remove()
      steps.remove()
    },
    hours: 0,
  },
  'a join beside a removal': {
    memberOf: ['one'],
    begin(steps) {
      steps.join()
      steps.remove()
    },
    hours: 1,
  },
  'a join beside a look': {
    memberOf: [],
    begin(steps) {
      steps.join()
      steps.walk()
    },
    hours: 1,
  },
  'a removal beside a look': {
    memberOf: ['one'],
    begin(steps) {
      steps.remove()
      steps.walk()
    },
    hours: 1,
  },
  'a join beside the removal of who is none yet': {
    memberOf: [],
    begin(steps) {
      steps.join()
      steps.remove()
    },
    hours: 1,
  },
}

for (const [name, scene] of Object.entries(SCENES)) {
  t.test(`join: ${name}, and the process dies at any step [member.index]`, async (t) => {
    const { broken, courses } = await explore(scene)
    t.comment(`${courses} courses`)
    t.ok(courses > 3)
    t.same(broken.slice(0, 10), [])
  })
}

/** Leaves while the account reports, check by check, whether the user is a member. Returns the final list. */
async function leaveWhile(...isMember: readonly boolean[]): Promise<object[]> {
  const ids = makeIds({ shard: 7, last: '', random: Math.random })
  const [userId, accountId] = [ids.next(1_000), ids.next(1_000)]
  const user = { address: 'ada@example.com', name: 'Ada', password: null, createdAtMs: 1, linkRound: 0, joins: 3 }
  const row = fieldsOfUser({ ...user, accounts: [accountId] })
  const fields = USER_FIELDS.map((name) => (row.includes(name) ? String(row[row.indexOf(name) + 1]) : null))
  const told: object[] = []
  const looks = [...isMember]
  const deps = {
    read: async (_shard: number, [fact]: readonly { readonly read: string }[]) =>
      fact?.read === 'fields' ? [fields] : [new Map(looks.shift() ? [[userId, '["r",1]']] : [])],
    ask: async (_shard: number, { name, body }: { readonly name: string; readonly body: object }) => {
      const { isMember: joins } = body as { isMember: boolean }
      told.push({ name, isMember: joins })
      return { kind: 'answer', reply: { kind: 'joined', isDone: true } }
    },
    newCmdId: () => 'c',
    nowMs: () => 2_000,
  }
  t.equal(await leave(deps as unknown as DashboardDeps, { userId }, accountId), null)
  t.equal(looks.length, 0, 'the account was asked as often')
  return told
}

t.test('join: the list follows the account at once, too [member.index]', async (t) => {
  t.same(await leaveWhile(true), [], 'a member stays')
  t.same(await leaveWhile(false, false), [{ name: 'join-account', isMember: false }])
})

t.test('join: a user who joins during a leave is restored by it [member.index]', async (t) => {
  t.same(await leaveWhile(false, true), [
    { name: 'join-account', isMember: false },
    { name: 'join-account', isMember: true },
  ])
})
