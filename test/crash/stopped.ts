/** stopped - one stop of `deep/crash/stop`. */
import t from 'tap'

process.env.STOPS ??= '1'
t.comment(`${process.env.STOPS} stop`)
await import('../deep/crash/stop.ts')
