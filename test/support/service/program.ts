/**
 * program - the program that runs `sendwright start` in tests: the compiled command line, or in a whole run the same
 * in one file, which starts in half the time (test/all.ts)
 */
import { join } from 'node:path'
import { ROOT } from '../machine/root.ts'

const { ONE_FILE_MAIN } = process.env

/** To be called with `start`; for other commands, which load little, it is no faster. */
export const MAIN = ONE_FILE_MAIN ?? join(ROOT, 'build', 'src', 'cli', 'main.js')
/** In one file the HTTP library is loaded before the module that configures it (`src/http/head-bytes.ts`). */
export const ENV_OF_ONE_FILE = { UWS_HTTP_MAX_HEADERS_SIZE: '16384' }
/** Of `MAIN`, in addition to the settings of a test. */
export const MAIN_ENV: Readonly<Record<string, string>> = ONE_FILE_MAIN === undefined ? {} : ENV_OF_ONE_FILE
