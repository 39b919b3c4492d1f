/** secret - what doctor finds of a rotation that waits, of one to begin, and of a setting that is left. */

import t from 'tap'
import { examineSecret, type SecretExamineDeps } from '../../src/health/secret.ts'
import { newRotation, type RotationState } from '../../src/state/ring/rotation.ts'

const BEGAN_MS = Date.UTC(2026, 10, 20, 12)
const MINUTE_MS = 60_000
const BY = { by: 'operator' } as never

/** What is found with this rotation, so long after it began. */
function found(
  changes: Partial<RotationState> | null,
  {
    afterMs = MINUTE_MS,
    hasNext = false,
    ...config
  }: Partial<SecretExamineDeps['config']> & {
    readonly afterMs?: number
    readonly hasNext?: boolean
  } = {},
) {
  const rotation = { ...newRotation({ rotationId: 'r', by: BY, startedAtMs: BEGAN_MS }), ...changes }
  const read = async () => [[changes === null ? null : JSON.stringify(rotation)]]
  return examineSecret({
    read: read as unknown as SecretExamineDeps['read'],
    config: { secretKey: null, secretKeyPrevious: null, ...config },
    door: { hasNext: () => hasNext },
    nowMs: () => BEGAN_MS + afterMs,
  })
}

t.test('health: a rotation that waits for a process [operator.health, secret.rotate]', async (t) => {
  const waitsFor = 'Process 42 on host-2 does not have the new secret'
  t.match(await found({ waitsFor }), { status: 'ok', message: /being rotated: 0 % \(preparing\)/ })
  t.match(await found({ waitsFor }, { afterMs: 11 * MINUTE_MS }), {
    name: 'secret',
    status: 'warning',
    message: /began at 2026-11-20T12:00:00.*waits: Process 42 on host-2/,
    fix: /Restart the named process/,
  })
  t.match(await found({ phase: 'walking' }, { afterMs: 11 * MINUTE_MS }), { status: 'ok' }, 'a long walk')
})

t.test('health: a secret that is set and not used, or used no more [operator.health]', async (t) => {
  const both = { secretKey: 'new', secretKeyPrevious: 'old' }
  t.match(await found(null, { ...both, hasNext: true }), { status: 'warning', fix: /Run sendwright secret rotate/ })
  const done = { phase: 'done', doneAtMs: BEGAN_MS } as const
  t.match(await found(done, both), { status: 'warning', fix: /Remove SECRET_KEY_PREVIOUS/ })
  t.match(await found({ phase: 'walking' }, both), { status: 'ok' }, 'it is needed until the end')
  t.match(await found(done, { secretKey: 'new' }), { status: 'ok', message: /rotated at 2026/ })
  t.match(await found(null, { hasNext: true }), { status: 'ok', message: /never rotated/ }, 'one in a file')
})

t.test('health: a store that does not answer [operator.health]', async (t) => {
  const config = { secretKey: null, secretKeyPrevious: null }
  const deps = { read: async () => null, config, door: { hasNext: () => false }, nowMs: () => BEGAN_MS }
  await t.rejects(examineSecret(deps as SecretExamineDeps), /does not answer/)
})
