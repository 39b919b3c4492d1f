#!/usr/bin/env node
/** main - `sendwright`, the command line as a process. */
import { runCommand } from './program.ts'

// Whatever this process and the Redis that it starts write is its owner's alone. Worker threads may not set it.
process.umask(0o077)
process.exitCode = await runCommand(process.argv.slice(2))
