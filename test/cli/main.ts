/** main - the command line as a process: what it prints, and its exit codes. */
import t from 'tap'
import { sendwright } from '../support/service/command-line.ts'

t.test('sendwright: 0 done, 1 refused or failed, 2 wrongly called', async (t) => {
  const [version, failed, wrong] = await Promise.all([
    sendwright(['--version']),
    sendwright(['domain', 'list']),
    sendwright(['sned']),
  ])
  t.match(version, { code: 0, out: /^\d+\.\d+\.\d+\n$/, err: '' })
  t.match(failed, { code: 1, out: '', err: /^No API key: / })
  t.match(wrong, { code: 2, out: '', err: /unknown command 'sned'/ })
})
