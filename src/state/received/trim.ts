/** trim - packed values end with the last significant one */

/** Leaves zeros at the end of a packed list off, the first value aside. */
export function trimZeros<Value>(packed: Value[]): Value[] {
  while (packed.length > 1 && packed.at(-1) === 0) packed.pop()
  return packed
}
