/**
 * records - an in-memory zone for code that queries the DNS by a function: names, their records, names that time out
 */

/** By name: records as `TYPE value`, or `TIMEOUT`. TXT keeps blanks, MX is `10 host`. */
export type Records = Readonly<Record<string, readonly string[]>>

/** A look-up in a zone, and how often it was asked. CNAMEs are followed. */
export function lookUpIn(records: Records): {
  lookUp: (name: string, type: string) => Promise<unknown[]>
  asked: string[]
} {
  const asked: string[] = []
  const lookUp = async (name: string, type: string): Promise<unknown[]> => {
    asked.push(`${type} ${name}`)
    return find(records, { name: name.toLowerCase().replace(/\.$/, ''), type, left: 10 })
  }
  return { lookUp, asked }
}

function find(records: Records, { name, type, left }: { name: string; type: string; left: number }): unknown[] {
  const own = records[name]
  if (own === undefined) throw Object.assign(new Error(`queryA ENOTFOUND ${name}`), { code: 'ENOTFOUND' })
  if (own.includes('TIMEOUT')) throw Object.assign(new Error(`queryA ETIMEOUT ${name}`), { code: 'ETIMEOUT' })
  const alias = own.find((record) => record.startsWith('CNAME '))?.slice(6)
  if (alias !== undefined && type !== 'CNAME' && left > 0) return find(records, { name: alias, type, left: left - 1 })
  const values = own.filter((record) => record.startsWith(`${type} `)).map((record) => record.slice(type.length + 1))
  if (values.length === 0) throw Object.assign(new Error(`queryA ENODATA ${name}`), { code: 'ENODATA' })
  if (type === 'TXT') return values.map((value) => [value])
  if (type !== 'MX') return values
  return values.map((value) => ({ priority: Number.parseInt(value, 10), exchange: value.split(' ')[1] ?? '' }))
}
