/** link - `sendwright operator-link` makes a link to the operator console, for users who must not see the key. */
import type { Command } from 'commander'
import type { LinkMade } from '../../../schemas/dashboard/link.ts'
import { type ClientOptions, makeClient } from '../console/client.ts'
import { withNote } from '../console/options.ts'
import { type Ended, print } from '../console/print.ts'

const PATH = '/v1/operator/link'

interface LinkOptions extends ClientOptions {
  note?: string
}

/** Adds the command. `ended` is called with the exit code of the command that ran. */
export function addOperatorLinkCommand(program: Command, ended: Ended): void {
  withNote(program.command('operator-link'))
    .description(
      'print a link to the operator console that works once, within half an hour, and opens a session of 8 hours. Anyone with the link operates the service',
    )
    .action(async (options: LinkOptions) => ended(await makeLink(options)))
}

async function makeLink({ note, ...options }: LinkOptions): Promise<number> {
  const made = await makeClient(options, 'operator').post<LinkMade>(PATH, { note })
  return print(options, made, ({ url, expiresAt }) => `${url}\nIt works once, until ${expiresAt}.`)
}
