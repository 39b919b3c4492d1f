/** secret-folder - a data directory with the secret in its file, as an installation on one machine has it. */
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Settings of a service with that directory. It removes the directory when it is stopped. */
export function secretInFile(secret = 'the first secret of an installation, long enough') {
  const dataDir = mkdtempSync(join(tmpdir(), 'sendwright-secret-'))
  writeFileSync(join(dataDir, 'secret-key'), `${secret}\n`, { mode: 0o600 })
  return { DATA_DIR: dataDir, SECRET_KEY: '' }
}
