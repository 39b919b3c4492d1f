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
  const [have, need] = [process.version, wanted].map((text) => text.match(/\d+/g).map(Number))
  const at = need.findIndex((number, n) => number !== have[n])
  return at === -1 || have[at] > need[at] ? null : `Node.js ${wanted} is needed, and this is ${process.version}`
}
