/**
 * main-host - `sendwright` as `src/cli/main.ts` runs it, for the one file of a whole run (test/all.ts), which has no
 * place for what is awaited outside functions
 */
import { runCommand } from '../../../src/cli/program.ts'

process.umask(0o077)
void runCommand(process.argv.slice(2)).then((code) => {
  process.exitCode = code
})
