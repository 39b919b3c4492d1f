/**
 * disk-figure - the free share of a disk for `/metrics`, as it was at the last request
 *
 * It never waits: a network disk that does not answer would hold back every other figure.
 */

import { readDisk } from './disk-space.ts'

/** Makes the reader; null: the disk has not answered yet. */
export function makeDiskFigure(folder: string): () => number | null {
  let known: number | null = null
  let isAsking = false
  const ask = (): void => {
    if (isAsking) return
    isAsking = true
    void readDisk(folder).then((disk) => {
      isAsking = false
      if (disk !== null && disk.bytes > 0) known = disk.free / disk.bytes
    })
  }
  ask()
  return () => {
    ask()
    return known
  }
}
