/**
 * router - finds the route of a method and a path, in the order that uWebSockets.js tries them
 *
 * Routes of the request's method come first, those of any method last. Within each, the order is segment by segment:
 * the same text, then a parameter, then a wildcard, with a step back if the rest does not match.
 */

import type { EngineRoute } from './engine.ts'

/** A route, and the parameters of its path. */
export interface MatchedRoute {
  readonly route: EngineRoute
  readonly params: readonly string[]
}

interface Branch {
  readonly texts: Map<string, Branch>
  param: Branch | null
  wildcard: EngineRoute | null
  route: EngineRoute | null
}

/** Makes the finder. It takes the method in lower case and the undecoded path, and returns null if nothing fits. */
export function makeRouter(routes: readonly EngineRoute[]): (method: string, path: string) => MatchedRoute | null {
  const trees = new Map<string, Branch>()
  for (const route of routes) {
    const method = route.method === 'del' ? 'delete' : route.method
    const tree = trees.get(method) ?? makeBranch()
    trees.set(method, tree)
    plant(tree, route)
  }
  return (method, path) => {
    const segments = path.slice(1).split('/')
    return findIn(trees.get(method), segments) ?? findIn(trees.get('any'), segments)
  }
}

function makeBranch(): Branch {
  return { texts: new Map(), param: null, wildcard: null, route: null }
}

function plant(tree: Branch, route: EngineRoute): void {
  let branch = tree
  for (const segment of route.pattern.slice(1).split('/')) {
    if (segment === '*') {
      branch.wildcard ??= route
      return
    }
    const next = segment.startsWith(':') ? branch.param : branch.texts.get(segment)
    const child = next ?? makeBranch()
    if (segment.startsWith(':')) branch.param = child
    else branch.texts.set(segment, child)
    branch = child
  }
  branch.route ??= route
}

function findIn(tree: Branch | undefined, segments: readonly string[]): MatchedRoute | null {
  if (tree === undefined) return null
  const params: string[] = []
  const route = descend(tree, { segments, params, depth: 0 })
  return route === null ? null : { route, params }
}

/** Goes no deeper than the patterns do, however long the path is. */
function descend(
  branch: Branch,
  { segments, params, depth }: { segments: readonly string[]; params: string[]; depth: number },
): EngineRoute | null {
  const segment = segments[depth]
  if (segment === undefined) return branch.route
  const text = branch.texts.get(segment)
  const exact = text === undefined ? null : descend(text, { segments, params, depth: depth + 1 })
  if (exact !== null) return exact
  if (branch.param !== null && segment !== '') {
    params.push(segment)
    const found = descend(branch.param, { segments, params, depth: depth + 1 })
    if (found !== null) return found
    params.pop()
  }
  return branch.wildcard
}
