/**
 * aof-files - reads the append-only files of a directory without a Redis: the entries of the manifest, and the
 * existing files.
 *
 * Redis keeps a base file, files with later commands, and a manifest that names them (Redis 7, multi-part AOF). It
 * begins empty if the manifest does not exist, and it writes over files whose numbers the manifest does not know: both
 * are found here before it is spawned.
 */
import { closeSync, openSync, readdirSync, readFileSync, readSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'

const TAIL_BYTES = 32
/** Temporary files of a rewrite, named by the pid of the writing process. */
const HALF_WRITTEN = /^temp-(?:rewriteaof-(?:bg-)?)?\d+\.(?:aof|rdb)$/

/** Redis's default names. The embedded Redis always uses them. */
export const AOF_DIRECTORY = 'appendonlydir'
export const AOF_NAME = 'appendonly.aof'

/** A file of the manifest: `b` base, `i` later commands. */
export interface AofFile {
  readonly name: string
  readonly seq: number
  readonly type: 'b' | 'i'
}

/** Content of a directory of append-only files. */
export interface AofFiles {
  /** Text of the manifest; null if missing. */
  readonly manifest: string | null
  /** The entries of the manifest in order, without history. */
  readonly named: readonly AofFile[]
  /** Bytes of each existing append-only file, by name. */
  readonly sizes: ReadonlyMap<string, number>
}

/**
 * The files that a manifest names, in its order. Files waiting for deletion (`h`) are left out, and so are the fields
 * of Redis 8 after the type (`startoffset`, `endoffset`). No redis needs it.
 */
export function parseManifest(text: string): AofFile[] {
  const lines = text.matchAll(/^file (?:"([^"]+)"|(\S+)) seq (\d+) type ([bi])(?: .*)?$/gm)
  return [...lines].map(([, quoted, bare, seq, type]) => ({
    name: quoted ?? bare ?? '',
    seq: Number(seq),
    type: type as 'b' | 'i',
  }))
}

/**
 * Whether the text of a manifest is one that redis has written: whole lines, and a file that writes go to. It is
 * replaced in one step.
 */
export function isWholeManifest(text: string): boolean {
  const lines = text.split('\n')
  const isLine = (line: string): boolean => /^file (?:"[^"]+"|\S+) seq \d+ type [bhi](?: \w+ \d+)*$/.test(line)
  return lines.pop() === '' && lines.every(isLine) && parseManifest(text).some(({ type }) => type === 'i')
}

/** The manifest of these files in the format of Redis. */
export function formatManifest(files: readonly AofFile[]): string {
  return files.map(({ name, seq, type }) => `file ${name} seq ${seq} type ${type}\n`).join('')
}

export function manifestPath(directory: string): string {
  return join(directory, AOF_DIRECTORY, `${AOF_NAME}.manifest`)
}

/**
 * Reads a data directory; null if it has no append-only files and no manifest. Throws errors of the file system.
 */
export function readAofFiles(directory: string): AofFiles | null {
  const folder = join(directory, AOF_DIRECTORY)
  const names = readNames(folder)
  const sizes = new Map<string, number>()
  for (const name of names) if (parseAofName(name) !== null) sizes.set(name, statSync(join(folder, name)).size)
  const isThere = names.includes(`${AOF_NAME}.manifest`)
  if (!isThere && sizes.size === 0) return null
  const manifest = isThere ? readFileSync(manifestPath(directory), 'utf8') : null
  return { manifest, named: parseManifest(manifest ?? ''), sizes }
}

/**
 * Removes incomplete rewrites of a killed Redis, which no Redis reads again. Only while none runs in the directory.
 * Returns the names. Throws errors of the file system.
 */
export function removeHalfWritten(directory: string): readonly string[] {
  const names = readdirSync(directory).filter((name) => HALF_WRITTEN.test(name))
  for (const name of names) rmSync(join(directory, name), { force: true })
  return names
}

/**
 * Returns the last bytes of a file before the position `end`, as latin1 text; null if they cannot be read yet. On some
 * file systems (FUSE, NFS) the size that stat(2) reports runs ahead of the bytes that read(2) returns.
 * Throws what the file system throws.
 */
export function readTail(path: string, end: number): string | null {
  const bytes = Buffer.alloc(Math.min(TAIL_BYTES, end))
  const file = openSync(path, 'r')
  try {
    return readSync(file, bytes, 0, bytes.length, end - bytes.length) < bytes.length ? null : bytes.toString('latin1')
  } finally {
    closeSync(file)
  }
}

/**
 * The newest whole set among the files that exist. The last base and the later files; null if one is missing.
 */
export function newestSet({ named, sizes }: AofFiles): AofFile[] | null {
  const there = [...sizes.keys()].flatMap((name) => parseAofName(name) ?? []).sort((a, b) => a.seq - b.seq)
  const base = there.filter(({ type }) => type === 'b').at(-1)
  if (base === undefined) return null
  const highest = highestOf(named)
  const isAbove = (file: AofFile): boolean => file.seq > highest
  const later = there.filter(({ type }) => type === 'i')
  // If an older copy was laid over newer files, only the newer ones belong together.
  const newer = later.filter(isAbove)
  return [base, ...(newer.length > 0 && named.length > 0 ? newer : later)]
}

/** Files with writes in them that are numbered above everything that the manifest names. */
export function filesAbove({ named, sizes }: AofFiles): string[] {
  const highest = highestOf(named)
  // Redis creates a file before the manifest names it. An empty file, or a base alone, is left over from a crash.
  return [...sizes].flatMap(([name, bytes]) => {
    const file = parseAofName(name)
    return file?.type === 'i' && bytes > 0 && file.seq > highest ? [name] : []
  })
}

function highestOf(named: readonly AofFile[]): number {
  return Math.max(0, ...named.filter(({ type }) => type === 'i').map(({ seq }) => seq))
}

/** `appendonly.aof.<n>.base.rdb`, `.base.aof` or `.incr.aof`; null for any other name. */
function parseAofName(name: string): AofFile | null {
  const [, seq, kind] = /^appendonly\.aof\.(\d+)\.(base\.(?:rdb|aof)|incr\.aof)$/.exec(name) ?? []
  if (seq === undefined) return null
  return { name, seq: Number(seq), type: kind === 'incr.aof' ? 'i' : 'b' }
}

function readNames(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}
