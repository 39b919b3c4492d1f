#!/usr/bin/env node
/** main - `sendwright`, the command line as a process. */
import { runCommand } from './program.ts'

process.exitCode = await runCommand(process.argv.slice(2))
