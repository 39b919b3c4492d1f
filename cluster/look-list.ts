/** look-list - what is to be looked at, by time: nearly everything comes in order, and little is still wanted when it is due. */
export class LookList<Item> {
  private list: { readonly item: Item; readonly atMs: number }[] = []

  /** When the first is due; Infinity when there is none. */
  get nextMs(): number {
    return this.list[0]?.atMs ?? Number.POSITIVE_INFINITY
  }

  add(item: Item, atMs: number): void {
    let place = this.list.length
    while (place > 0 && this.list[place - 1]!.atMs > atMs) place -= 1
    if (place === this.list.length) this.list.push({ item, atMs })
    else this.list.splice(place, 0, { item, atMs })
  }

  /** Takes out what is due at a time, in order. */
  due(atMs: number): Item[] {
    let count = 0
    while (count < this.list.length && this.list[count]!.atMs <= atMs) count += 1
    return count === 0 ? [] : this.list.splice(0, count).map(({ item }) => item)
  }
}
