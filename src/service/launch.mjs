/**
 * launch - `./sendwright`, `npx sendwright` and `npm start`: runs the command in this process, or prints why it cannot.
 *
 * In the same process, so that a command needs no second Node and signals reach their handler.
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
