/** figures - opens the readers of the figures that are counted in the store */

import type { Reader } from '../key.ts'
import { type ErasureFigureDeps, makeErasureFigures } from './erasure-figures.ts'
import { makeQueueFigures, type QueueFigureDeps } from './queue-figures.ts'
import { makeRotationFigures } from './rotation.ts'
import { makeDomainFigures } from './undecided-domains.ts'

/** Opens them all. */
export function openFigures(deps: ErasureFigureDeps & QueueFigureDeps & { readonly read: Reader }) {
  return {
    erasureFigures: makeErasureFigures(deps),
    domainFigures: makeDomainFigures(deps),
    rotationFigures: makeRotationFigures(deps),
    queueFigures: makeQueueFigures(deps),
  }
}
