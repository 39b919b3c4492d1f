/**
 * Mail to the addresses that accept reports from anyone, built so that parsing it takes long: endless blanks, headers,
 * parts and boundaries. Reports of other clients are accepted meanwhile.
 */
import t from 'tap'
import { deliverMail } from '../../support/peers/smtp-dialog.ts'
import { isHarmless, startAttacked } from '../../support/service/attacked.ts'
import { HOSTILE_REPORTS } from '../../support/service/hostile-reports.ts'

const FLOOD = ['fbl', 'abuse', 'postmaster']

const service = await startAttacked(t, { SERVICE_DOMAIN: 'service.example' })
const send = (role: string, mail: string) => deliverMail(service.mxPort, `${role}@rp.service.example`, mail)
// A thread that starts is not measured.
await Promise.all(FLOOD.map((role) => send(role, 'Subject: A report\n\nOf a person.')))

t.test('reports: reports that take long to parse delay no other client [bounce.unread]', async (t) => {
  const harm = await service.during(async () => {
    const flood = Object.values(HOSTILE_REPORTS).flatMap((mail) => FLOOD.map((role) => send(role, mail)))
    for (const reply of await Promise.all(flood)) t.match(reply, /^250/)
  }, ['http', 'report'])
  isHarmless(t, harm, { grownMb: 200 })
})
