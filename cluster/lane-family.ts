/** lane-family - lanes are called `<family>` or `<family>/<name>`. */

/** The family of a lane: what stands before its slash. */
export function laneFamily(lane: string): string {
  const slash = lane.indexOf('/')
  return slash < 0 ? lane : lane.slice(0, slash)
}
