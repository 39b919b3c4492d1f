/** cold - a store of thirteen months, and what it takes */
import { join } from 'node:path'
import { ROOT } from '../../../test/support/machine/root.ts'
import { fillPlace } from './cold-fill.ts'
import { isFilled, openPlace } from './cold-place.ts'

export async function benchCold({ messages }: { messages: number }): Promise<void> {
  const dir = join(ROOT, 'data', `cold-${messages}`, 'd')
  const place = await openPlace(dir)
  try {
    if (!isFilled(dir)) console.log(JSON.stringify(await fillPlace(place, messages, (line) => console.log(line))))
  } finally {
    await place.close()
  }
}
