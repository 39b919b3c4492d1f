/** killed - a few kills of `deep/crash/kills`. */
import t from 'tap'

process.env.KILLS ??= '2'
t.comment(`${process.env.KILLS} kills`)
await import('../deep/crash/kills.ts')
