/**
 * sometimes - situations that the seeds of a run must have reached: promises that are kept only because nothing
 * difficult happened prove nothing
 *
 * A situation is recognized in the trace of a seed, by one line or by lines in an order. The deep tests fail if a
 * situation is reached by no seed.
 */

/** A situation, and whether a trace has it. */
interface Situation {
  readonly name: string
  readonly isIn: (lines: readonly string[]) => boolean
}

const line =
  (pattern: RegExp) =>
  (lines: readonly string[]): boolean =>
    lines.some((one) => pattern.test(one))

export const SITUATIONS: readonly Situation[] = [
  { name: 'a commit is done and its answer lost', isIn: line(/ commit#\d+ .* done, answer lost ok/) },
  { name: 'a commit is lost on its way', isIn: line(/ commit#\d+ .* lost on its way/) },
  { name: 'a commit is sent again and was done before', isIn: line(/ commit#\d+ .* done dup/) },
  { name: 'a commit of a former owner is refused', isIn: line(/ commit#\d+ .* done fenced/) },
  { name: 'a commit comes after its deadline', isIn: line(/ commit#\d+ .* done late/) },
  { name: 'a full store refuses a commit', isIn: line(/ commit#\d+ .* done refused/) },
  { name: 'a shard is taken over while a commit has an unknown outcome', isIn: takenOverInDoubt },
  { name: 'a process is killed while its commit is in flight', isIn: killedInFlight },
  { name: 'an attempt is repeated by another process', isIn: repeatedElsewhere },
  { name: 'a process is paused, and others take its shard', isIn: takenWhilePaused },
  { name: 'a parcel is handed over and the answer lost', isIn: line(/ enqueue#\d+ .* done, answer lost ok/) },
  { name: 'a published message is lost', isIn: line(/ mail lost/) },
  { name: 'an outcome is handed to the next owner', isIn: line(/ handIn#\d+ .* done/) },
  { name: 'a behaviour throws', isIn: line(/ A behaviour threw/) },
  { name: 'an effect throws', isIn: line(/ An effect threw/) },
  { name: 'a process is cut off from the store', isIn: line(/ cut off p\d+/) },
  { name: 'the store is set back', isIn: line(/ set back by /) },
  { name: 'the loss of confirmed commits is reported', isIn: line(/ has lost confirmed commits/) },
  { name: 'a clock goes back', isIn: line(/ clock -\d/) },
  { name: 'a replica takes over from a primary', isIn: line(/ \S+:\d+ for \S+:\d+/) },
  { name: 'a primary learns that it was replaced', isIn: line(/ hears of it and is deposed/) },
  { name: 'a process is paused across a failover', isIn: pausedAcrossFailover },
  { name: 'a shard is moved to another primary', isIn: line(/ s\d+ moves to /) },
  { name: 'an order that moves a shard is killed', isIn: line(/ order \d+ is killed/) },
]

/** The names of the situations that a trace has. */
export function situationsIn(trace: readonly string[]): string[] {
  return SITUATIONS.filter(({ isIn }) => isIn(trace)).map(({ name }) => name)
}

const COMMIT = / (answer )?commit#(\d+) (p\d+)(?: (s\d+) (.*))?$/
const ACQUIRED = / acquire#\d+ (p\d+) (s\d+) done ok/

/** A commit that was lost, or whose answer was, and then another process owns the shard. */
function takenOverInDoubt(lines: readonly string[]): boolean {
  const doubted = new Map<string, string>()
  for (const one of lines) {
    const [, , , process = '', shard, end = ''] = COMMIT.exec(one) ?? []
    if (shard !== undefined) {
      if (/lost/.test(end)) doubted.set(shard, process)
      else doubted.delete(shard)
    }
    const [, owner, taken = ''] = ACQUIRED.exec(one) ?? []
    if (owner !== undefined && (doubted.get(taken) ?? owner) !== owner) return true
  }
  return false
}

/** A commit was applied, and its process is killed before it has the answer. */
function killedInFlight(lines: readonly string[]): boolean {
  const open = new Map<string, string>()
  for (const one of lines) {
    const [, answer, commit = '', process = ''] = COMMIT.exec(one) ?? []
    if (answer !== undefined) open.delete(process)
    else if (process !== '') open.set(process, commit)
    const [, killed] = / kill (p\d+)$/.exec(one) ?? []
    if (killed !== undefined && open.has(killed)) return true
  }
  return false
}

function repeatedElsewhere(lines: readonly string[]): boolean {
  const first = new Map<string, string>()
  for (const one of lines) {
    const [, process = '', item = ''] = / effect (p\d+) (\S+) \d+ /.exec(one) ?? []
    if (item === '') continue
    if ((first.get(item) ?? process) !== process) return true
    first.set(item, process)
  }
  return false
}

/** Looks for a line that comes while a process is paused. */
function whilePaused(lines: readonly string[], isMet: (one: string, paused: ReadonlySet<string>) => boolean): boolean {
  const paused = new Set<string>()
  for (const one of lines) {
    const [, act, process = ''] = / (pause|resume) (p\d+)$/.exec(one) ?? []
    if (act === 'pause') paused.add(process)
    if (act === 'resume') paused.delete(process)
    if (paused.size > 0 && isMet(one, paused)) return true
  }
  return false
}

/** The last owner of a shard is paused when another process takes it. */
function takenWhilePaused(lines: readonly string[]): boolean {
  const owners = new Map<string, string>()
  return whilePaused(lines, (one, paused) => {
    const [, owner, shard = ''] = ACQUIRED.exec(one) ?? []
    if (owner === undefined) return false
    const former = owners.get(shard)
    owners.set(shard, owner)
    return former !== undefined && former !== owner && paused.has(former)
  })
}

function pausedAcrossFailover(lines: readonly string[]): boolean {
  return whilePaused(lines, (one) => / \S+:\d+ for \S+:\d+/.test(one))
}
