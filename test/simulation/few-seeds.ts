/** few-seeds - twenty seeds of `deep/simulation/seeds`. */
import t from 'tap'

process.env.SEEDS ??= '20'
t.comment(`${process.env.SEEDS} seeds`)
await import('../deep/simulation/seeds.ts')
