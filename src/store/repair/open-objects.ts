/**
 * open-objects - the store and the content store of an installation, opened for one act beside the service
 *
 * Spec operator.health, operator.repair
 */

import type { Contents } from '../../content/contents.ts'
import { openContents } from '../../content/open.ts'
import { SealedSegments } from '../../content/sealed/segment.ts'
import type { Config } from '../../process/config.ts'
import { monotonicMs } from '../../process/fence.ts'
import { checkOfSecret, type Ring } from '../../state/ring/ring.ts'
import { makeHomeMark, readChecks } from '../installation.ts'
import type { Nodes } from '../nodes.ts'
import { readTimeMs } from '../raw-rows.ts'
import { readRingNow } from '../ring.ts'
import { findSecret } from '../secret.ts'

/** Both stores. */
export interface OpenObjects {
  readonly nodes: Nodes
  readonly contents: Contents
  readonly segments: SealedSegments
  readonly ring: Ring
  /** The store's time when they were opened, ms. */
  readonly nowMs: number
}

const NOTED = { info: () => undefined, warn: () => undefined }

/**
 * Opens the content store of an installation, runs `act`, and closes it. Null if all content is in Redis. Throws Error,
 * a sentence, if the secret or the content store is not the installation's.
 */
export async function withObjects<Result>(
  nodes: Nodes,
  config: Config,
  act: (open: OpenObjects) => Promise<Result>,
): Promise<Result | null> {
  const mark = makeHomeMark(nodes)
  if ((await mark.read()) === null) return null
  const checks = await readChecks(nodes.common())
  const secret = findSecret({ ...config, ...checks, checkOf: checkOfSecret, mayMake: false })
  const ring = await readRingNow(nodes.common(), secret)
  const worker = (): string => `command-${process.pid}`
  const contents = await openContents({ config, mark, log: NOTED, worker, told: () => undefined })
  if (contents === null) return null
  try {
    const segments = new SealedSegments({ contents, ring, nowMs: monotonicMs })
    return await act({ nodes, contents, segments, ring, nowMs: await readTimeMs(nodes, 0) })
  } finally {
    await contents.close()
  }
}
