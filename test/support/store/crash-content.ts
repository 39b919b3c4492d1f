/**
 * crash-content - a process that ends itself at a step of a write to the content store, or of a removal
 *
 * The steps are what the product asks of the system: it is Node's own calls that end the process, so the product holds
 * nothing for it. Several writes pass first, so that one is hit among others.
 */
import fs, { type FileHandle } from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'

export const CONTENT_POINTS = [
  'being written',
  'on the disk',
  'named',
  'names on the disk',
  'without its unfinished name',
  'removed',
] as const
export type ContentPoint = (typeof CONTENT_POINTS)[number]

/** Of the calls at a step, the one that ends the process. */
const NTH = 7
const UNFINISHED = /\/content\/tmp\/[^/]+$/
const DAY = /\/content\/\d{3}\/(?:out|in)\/\d{8}$/
const OBJECT = /\/content\/\d{3}\/(?:out\/\d{8}\/[^/]+\.files|in\/\d{8}\/[^/]+)$/

/** Ends this process with SIGKILL at a step. */
export function dieAtContent(point: ContentPoint): void {
  let calls = 0
  const reach = (step: ContentPoint): void => {
    if (step !== point) return
    calls += 1
    if (calls === NTH) process.kill(process.pid, 'SIGKILL')
  }
  const { open, unlink } = fs
  fs.open = async (path, ...rest) => {
    const file = await open(path, ...rest)
    if (UNFINISHED.test(String(path)) || OBJECT.test(String(path)))
      watch(
        file,
        'datasync',
        () => reach('being written'),
        () => reach('on the disk'),
      )
    if (DAY.test(String(path)))
      watch(
        file,
        'sync',
        () => reach('named'),
        () => reach('names on the disk'),
      )
    return file
  }
  fs.unlink = async (path) => {
    await unlink(path)
    if (UNFINISHED.test(String(path))) reach('without its unfinished name')
    if (OBJECT.test(String(path))) reach('removed')
  }
  syncBuiltinESMExports()
}

/** Calls back before and after one of a file's calls. */
function watch(file: FileHandle, name: 'datasync' | 'sync', before: () => void, after: () => void): void {
  const call = file[name].bind(file)
  file[name] = async () => {
    before()
    await call()
    after()
  }
}
