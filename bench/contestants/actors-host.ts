/**
 * actors-host - a process with the actors alone, beside the one that listens
 */

import { obey } from './host-side.ts'
import { startProduct } from './product-service.ts'

obey(async (order) => {
  const { port, operatorPort, service } = await startProduct(order, 'actors')
  return { ready: { port, operatorPort, keys: [], domain: '' }, stop: () => service.stop() }
})
