/** brief - some seconds of `deep/fuzz`: bodies, sessions of SMTP, mail that is parsed. */
import t from 'tap'

process.env.FUZZ_RUNS ??= '600'
process.env.FUZZ_SESSIONS ??= '150'
t.comment(`${process.env.FUZZ_RUNS} bodies, ${process.env.FUZZ_SESSIONS} sessions`)
await import('../deep/fuzz/email.ts')
await import('../deep/fuzz/smtp.ts')
