/**
 * ledger-file - the answers of clients, on disk before they continue: the one witness that no fault of the service
 * reaches.
 *
 * A line is written and fsynced together with those that arrived meanwhile.
 */
import { type FileHandle, open, readFile } from 'node:fs/promises'
import type { Accepted } from '../support/clients/ledger.ts'

export interface LedgerFile {
  /** Resolves when the line is on disk. */
  note(message: Accepted): Promise<void>
  close(): Promise<void>
}

export async function openLedgerFile(path: string): Promise<LedgerFile> {
  const file = await open(path, 'a')
  let lines = ''
  let waiting: (() => void)[] = []
  let writing: Promise<void> | null = null
  const flush = async (): Promise<void> => {
    while (lines !== '') {
      const [text, told] = [lines, waiting]
      lines = ''
      waiting = []
      await write(file, text)
      for (const resolve of told) resolve()
    }
    writing = null
  }
  return {
    note(message) {
      lines += `${JSON.stringify(message)}\n`
      return new Promise((resolve) => {
        waiting.push(resolve)
        writing ??= flush()
      })
    },
    async close() {
      await writing
      await file.close()
    },
  }
}

async function write(file: FileHandle, text: string): Promise<void> {
  await file.appendFile(text)
  await file.datasync()
}

/** Every line on disk. */
export async function readLedgerFile(path: string): Promise<Accepted[]> {
  const text = await readFile(path, 'utf8')
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Accepted)
}
