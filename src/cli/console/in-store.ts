/** in-store - an act of a command on the store itself, with the settings of the service */
import { type Config, readConfig } from '../../process/config.ts'
import { CommandFailure } from './failure.ts'

/** Runs an act with the settings of the environment; its errors are sentences. */
export async function inStore<Result>(act: (config: Config) => Promise<Result>): Promise<Result> {
  const settings = readConfig()
  if (!settings.ok) throw new CommandFailure(`Wrong settings: ${settings.mistakes.join('; ')}`)
  return await act(settings.config).catch((error: Error) => {
    throw new CommandFailure(error.message)
  })
}
