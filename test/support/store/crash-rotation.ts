/**
 * crash-rotation - a process that ends itself at a step of a rotation of the secret
 *
 * The steps are what the product asks of Redis: the client's own calls end the process, so the product holds nothing
 * for it.
 */
import { Redis } from 'ioredis'

export const ROTATION_POINTS = [
  'generation being added',
  'generation added',
  'generation seals',
  'values being sealed again',
  'former generation being removed',
  'former generation removed',
  'file being rewritten',
] as const
export type RotationPoint = (typeof ROTATION_POINTS)[number]

const CONF = '{cl}:conf'

/** Ends this process with SIGKILL at a step. */
export function dieAtRotation(point: RotationPoint): void {
  let [changes, scans] = [0, 0]
  const reach = (step: RotationPoint): void => {
    if (step === point) process.kill(process.pid, 'SIGKILL')
  }
  const { eval: evaluate, scan, bgrewriteaof } = Redis.prototype
  Object.assign(Redis.prototype, {
    async eval(this: Redis, ...args: Parameters<typeof evaluate>) {
      const isRing = args.includes(CONF) && String(args[0]).includes('former-secret')
      if (!isRing) return evaluate.apply(this, args)
      changes += 1
      if (changes === 1) reach('generation being added')
      if (changes === 3) reach('former generation being removed')
      const answer = await evaluate.apply(this, args)
      reach(
        (['generation added', 'generation seals', 'former generation removed'] as const)[changes - 1] as RotationPoint,
      )
      return answer
    },
    async scan(this: Redis, ...args: Parameters<typeof scan>) {
      scans += 1
      // Values of the page before have been ordered.
      if (scans === 2) reach('values being sealed again')
      return scan.apply(this, args)
    },
    async bgrewriteaof(this: Redis) {
      const answer = await bgrewriteaof.apply(this)
      reach('file being rewritten')
      return answer
    },
  })
}
