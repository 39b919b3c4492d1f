/**
 * pack - one argument out of many: MessagePack as the store's Lua reads it.
 *
 * Thousands of small arguments cost the client more than they cost the store. Lists, texts and small counts are all that
 * is written; bytes travel beside it and are named by place, because the store's reader knows no binary type.
 */

export type Packed = string | number | readonly Packed[]

const GROW = 2
let buffer = Buffer.allocUnsafe(65_536)
let end = 0

/** MessagePack of lists, texts (UTF-8) and counts from 0 to 4,294,967,295. The answer is a copy. */
export function pack(value: Packed): Buffer {
  end = 0
  write(value)
  return Buffer.from(buffer.subarray(0, end))
}

function write(value: Packed): void {
  if (typeof value === 'string') writeText(value)
  else if (typeof value === 'number') writeCount(value)
  else {
    room(5)
    writeHead(value.length, { fix: 0x90, fixMax: 15, wide: 0xdc })
    for (const part of value) write(part)
  }
}

function writeHead(length: number, { fix, fixMax, wide }: { fix: number; fixMax: number; wide: number }): void {
  if (length <= fixMax) buffer[end++] = fix | length
  else if (length <= 0xffff) {
    buffer[end++] = wide
    end = buffer.writeUInt16BE(length, end)
  } else {
    buffer[end++] = wide + 1
    end = buffer.writeUInt32BE(length, end)
  }
}

function writeText(text: string): void {
  if (text.length <= 10) {
    room(text.length * 3 + 1)
    const length = buffer.write(text, end + 1)
    buffer[end] = 0xa0 | length
    end += 1 + length
    return
  }
  const bytes = Buffer.byteLength(text)
  room(bytes + 5)
  if (bytes <= 31) buffer[end++] = 0xa0 | bytes
  else if (bytes <= 0xff) {
    buffer[end++] = 0xd9
    buffer[end++] = bytes
  } else writeHead(bytes, { fix: 0, fixMax: -1, wide: 0xda })
  end += buffer.write(text, end)
}

function writeCount(count: number): void {
  room(5)
  if (count <= 0x7f) buffer[end++] = count
  else {
    buffer[end++] = 0xce
    end = buffer.writeUInt32BE(count, end)
  }
}

function room(bytes: number): void {
  if (end + bytes <= buffer.length) return
  const grown = Buffer.allocUnsafe(Math.max(buffer.length * GROW, end + bytes))
  buffer.copy(grown, 0, 0, end)
  buffer = grown
}
