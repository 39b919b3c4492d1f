/**
 * commits - the last part of `npm run check`: subjects of new commits have the form `area: Imperative sentence`
 *
 * New commits are those of this branch that its base does not have, made after this check existed. The base is the
 * first of `origin/main`, `origin/master`, `main` and `master` that exists and is not the current branch. Without git,
 * outside a repository or without a base nothing is checked. Prints each fault and then exits with 1.
 */
import { spawnSync } from 'node:child_process'

const BASES = ['refs/remotes/origin/main', 'refs/remotes/origin/master', 'refs/heads/main', 'refs/heads/master']
const PATH = 'test/support/tidy/commits.mjs'
const CHARS_MAX = 60
const FORM = /^[a-z][a-z0-9-]*(?:, [a-z][a-z0-9-]*)*: (?<sentence>[A-Z].*)$/s
/** First words of sentences that give no order. */
const NO_VERB =
  /^(?:A|An|The|Its?|This|That|These|Those|There|Th?en|What|Who|Whom|Whose|Where|When|While|Which|If|Of|In|On|At|By|For|From|To|With|Without|After|Before|No|Not|Nothing|Nobody|None|All|Any|Each|Every|One|Two|Only|Some|More|Most|New)$/
/** Endings of the third person, the past and the gerund, and verbs whose plain form ends in this way. */
const INFLECTED = /(?:[^s]s|ed|ing)$/
const PLAIN =
  /^(?:Alias|Bias|Bring|Canvas|Embed|Exceed|Feed|Focus|Heed|Need|Ping|Proceed|Ring|Seed|Shed|Speed|Spring|String|Succeed|Swing|Weed|Wring)$/
/** A finite verb right behind the first word: that word is a noun. */
const STATEMENT = /^\S+ (?:is|are|was|were|has|have|had|can|may|must|will|does|do)\b/

/** The fault of a subject; null if there is none. */
export function faultOfSubject(subject) {
  if (/^Revert "/.test(subject)) return null
  const length = [...subject].length
  if (length > CHARS_MAX) return `${length} characters, at most ${CHARS_MAX}`
  const sentence = FORM.exec(subject)?.groups?.sentence
  if (sentence === undefined) return 'not of the form "area: Imperative sentence"'
  if (sentence.endsWith('.')) return 'ends with a full stop'
  const [word = ''] = sentence.split(/[^A-Za-z-]/)
  const isVerb = !NO_VERB.test(word) && (!INFLECTED.test(word) || PLAIN.test(word)) && !STATEMENT.test(sentence)
  return isVerb ? null : `does not begin with an imperative: "${word}"`
}

function git(...args) {
  const { status, stdout } = spawnSync('git', args, { encoding: 'utf8' })
  return status === 0 ? stdout.trim() : null
}

/** Hashes and subjects of new commits. */
function newCommits() {
  const current = git('symbolic-ref', '-q', 'HEAD')
  const base = BASES.find((name) => name !== current && git('rev-parse', '-q', '--verify', name) !== null)
  if (base === undefined) return []
  const added = git('log', '--diff-filter=A', '--format=%H', '-1', '--', PATH)
  const log = git('log', '--no-merges', '--format=%h %s', 'HEAD', `^${base}`, ...(added ? [`^${added}`] : []))
  return (log ?? '').split('\n').filter((line) => line !== '')
}

if (process.argv[1] === import.meta.filename) {
  const faults = newCommits().flatMap((line) => {
    const fault = faultOfSubject(line.slice(line.indexOf(' ') + 1))
    return fault === null ? [] : [`${line}\n  ${fault}`]
  })
  for (const fault of faults) console.error(fault)
  if (faults.length > 0) process.exitCode = 1
}
