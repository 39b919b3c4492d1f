/**
 * launch - `./sendwright`, `npx sendwright` and `npm start`: runs the command in this very process, or says why it
 * cannot.
 *
 * The same process, so that a command costs no second Node and signals arrive where they are handled.
 */
import { pathToFileURL } from 'node:url'
import { faultOfBuild, faultOfNode, MAIN } from './built.mjs'

const fault = faultOfNode() ?? faultOfBuild()
if (fault !== null) {
  console.error(fault)
  process.exit(1)
}
process.argv[1] = MAIN
await import(pathToFileURL(MAIN).href)
