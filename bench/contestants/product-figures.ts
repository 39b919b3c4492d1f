/** product-figures - metrics that the product serves on its operator listener */

/** One figure of `/metrics` by its name without labels; null when it is not there. */
export async function readFigure(operatorPort: number, name: string): Promise<number | null> {
  const response = await fetch(`http://127.0.0.1:${operatorPort}/metrics`)
  const text = await response.text()
  const value = new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]
  return value === undefined ? null : Number(value)
}

/** Requests that the product answered with 200. */
export async function readAccepted(operatorPort: number): Promise<number> {
  const accepted = await readFigure(operatorPort, 'sendwright_accepted_requests_total')
  if (accepted === null) throw new Error('The service does not say how many requests it has accepted')
  return accepted
}
