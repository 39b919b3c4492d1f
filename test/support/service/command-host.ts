/**
 * command-host - runs one command after another in this process for its parent: the commands of `sendwright` without
 * the start of a process for each.
 */
import { runCommand } from '../../../src/cli/program.ts'

/** One call: the arguments of `sendwright`, and the whole environment. */
export interface CommandCall {
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
}

async function answer({ args, env }: CommandCall): Promise<void> {
  for (const name of Object.keys(process.env)) delete process.env[name]
  Object.assign(process.env, env)
  const said = { out: '', err: '' }
  const restore = [
    capture(process.stdout, (piece) => (said.out += piece)),
    capture(process.stderr, (piece) => (said.err += piece)),
  ]
  const code = await runCommand(args)
  for (const give of restore) give()
  process.send?.({ ...said, code })
}

/** Passes written text to `sink` instead of writing it. Returns a function that ends this. */
function capture(sink: NodeJS.WriteStream, take: (piece: string) => void): () => void {
  const write = sink.write
  sink.write = ((piece: string | Uint8Array) => {
    take(typeof piece === 'string' ? piece : Buffer.from(piece).toString())
    return true
  }) as typeof write
  return () => {
    sink.write = write
  }
}

let turn = Promise.resolve()
process.on('message', (call: CommandCall) => {
  turn = turn.then(() => answer(call))
})
