/** names - each variable of a broadcast has its own value, whatever the names of the others are */
import t from 'tap'
import { mapBroadcast } from '../../src/doors/mailgun/broadcast.ts'

t.test('names: a variable named as ours are does not take the value of another', async (t) => {
  const to = ['ada@list.example']
  const names = ['variable_1', 'first-name', 'variable_0', 'last-name', 'variable_3', 'plain']
  const values = Object.fromEntries(names.map((name) => [name, `<${name}>`]))
  const text = names.map((name) => `%recipient.${name}%`).join(' ')
  const mapped = mapBroadcast(
    { to, text },
    { variables: JSON.stringify({ 'ada@list.example': values }), streamId: 's' },
  )
  const { text: template, messages } = (mapped as { body: { text: string; messages: [{ substitutions: object }] } })
    .body
  const own = new Map(Object.entries(messages[0].substitutions))
  t.equal(
    template.replace(/\{\{(\w+)\}\}/g, (_, name: string) => String(own.get(name))),
    names.map((name) => `<${name}>`).join(' '),
  )
})
