/** gate - a handler that waits until the test lets it continue */

import type { EdgeRequest } from '../../../src/http/request.ts'

/** A door that a handler waits at until the test opens it. */
export function makeGate() {
  let arrived: (request: EdgeRequest) => void = () => undefined
  let release: () => void = () => undefined
  const request = new Promise<EdgeRequest>((resolve) => {
    arrived = resolve
  })
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  return { request, released, arrived: (seen: EdgeRequest) => arrived(seen), release: () => release() }
}
