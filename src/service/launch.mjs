/**
 * launch - `./sendwright`, `npx sendwright` and `npm start`: runs the command in this very process, or says why it
 * cannot.
 *
 * The same process, so that a command costs no second Node and signals arrive where they are handled.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { faultOfBuild, MAIN, ROOT } from './built.mjs'

const fault = faultOfNode() ?? faultOfBuild()
if (fault !== null) {
  console.error(fault)
  process.exit(1)
}
process.argv[1] = MAIN
await import(pathToFileURL(MAIN).href)

/** Out: null, or what is wrong with this Node.js. */
function faultOfNode() {
  const wanted = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')).engines.node
  const [least, past] = wanted.split(' ').map(numbersIn)
  const have = numbersIn(process.version)
  const isIn = compare(have, least) >= 0 && compare(have, past) < 0
  return isIn ? null : `Node.js ${wanted} is required, but this is ${process.version}`
}

function numbersIn(version) {
  return version.match(/\d+/g).map(Number)
}

/** Out: below 0, 0 or above 0, by the numbers that the second version has. */
function compare(one, other) {
  const at = other.findIndex((number, n) => number !== one[n])
  return at === -1 ? 0 : one[at] - other[at]
}
