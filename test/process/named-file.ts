/** named-file - what cannot be read says which setting it was. */

import t from 'tap'
import { readNamedFile, WrongFile } from '../../src/process/named-file.ts'

t.test('named-file: read, or a mistake that names the setting and the place', async (t) => {
  t.match(readNamedFile('SITE_LIMITS', new URL(import.meta.url).pathname), 'named-file')
  for (const path of ['/none/such', '/'])
    t.throws(
      () => readNamedFile('SITE_LIMITS', path),
      new WrongFile('SITE_LIMITS', { wanted: 'a readable file', path }),
    )
  t.equal(new WrongFile('A', { wanted: 'a key', path: '/x' }).message, 'A: a key (is "/x")')
})
