/**
 * load - chooses the HTTP library: uWebSockets.js if its native module fits this machine, otherwise `node:http`
 *
 * Spec http.engine
 */

import type { Engine, EngineName } from './engine.ts'
import { nodeEngine } from './node.ts'
import { loadUws } from './uws.ts'

/**
 * Loads the engine that `HTTP_ENGINE` names. Throws Error if `uws` is required and cannot be loaded.
 */
export async function loadEngine(choice: EngineName | 'auto'): Promise<Engine> {
  if (choice === 'node') return nodeEngine(null)
  const loaded = await loadUws()
  if (!(loaded instanceof Error)) return loaded
  const here = `Node.js ${process.versions.node} on ${process.platform} ${process.arch}`
  const reason = `uWebSockets.js has no native module for ${here}`
  if (choice === 'auto') return nodeEngine(reason)
  throw new Error(
    `HTTP_ENGINE: ${reason}. Set HTTP_ENGINE=auto to use node:http, or install a release of uWebSockets.js for it`,
    { cause: loaded },
  )
}
