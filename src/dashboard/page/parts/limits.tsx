/** limits - the use of each limit, and its reset */
import type { LimitEntry } from '../../../../schemas/server.ts'
import { formatAgo, formatNumber } from '../api/words.ts'

const SCOPES = { account: 'account', server: 'this server', test: 'all test servers' } as const
const WARNS_AT = 0.8

/** The bars of limits. */
export function Limits({ limits }: { limits: readonly LimitEntry[] }) {
  return (
    <>
      {limits.map(({ scope, period, limit, used, resetsAt }) => {
        const share = limit === 0 ? 1 : used / limit
        const tone = share >= 1 ? 'bounced' : share >= WARNS_AT ? 'deferred' : ''
        const name = `This ${period}, ${SCOPES[scope]}`
        return (
          <div class={`limit ${tone}`} key={`${scope} ${period}`}>
            <div class="row">
              <b>{name}</b>
              <span class="num">
                {formatNumber(used)} of {formatNumber(limit)}
              </span>
            </div>
            <progress value={used} max={Math.max(1, limit)} aria-label={name} />
            <div class="row">
              <span>Starts again {formatAgo(resetsAt)}</span>
            </div>
          </div>
        )
      })}
    </>
  )
}
