/** event-lines - the contents of a feed of events, line by line (WHATWG HTML, "server-sent events") */

/** An event of a feed. */
export interface EventLine {
  readonly id: string | null
  /** Whether the feed reports that it left some out. */
  readonly isMissed: boolean
  // biome-ignore lint/suspicious/noExplicitAny: a test reads what it expects.
  readonly data: any
}

/** Reads a feed until it ends. Out: `lines` grows as they come; `over` resolves with true when none will. */
export function readEventLines(response: Response): { readonly lines: EventLine[]; readonly over: Promise<true> } {
  const lines: EventLine[] = []
  const read = async (): Promise<void> => {
    let text = ''
    for await (const chunk of response.body ?? []) {
      text += Buffer.from(chunk).toString()
      const blocks = text.split('\n\n')
      text = blocks.pop() ?? ''
      for (const block of blocks) {
        const [, id, name, data] = /^(?:id: (\S+)\n)?(?:event: (\S+)\n)?data: (.*)$/.exec(block) ?? []
        if (data !== undefined) lines.push({ id: id ?? null, isMissed: name === 'missed', data: JSON.parse(data) })
      }
    }
  }
  // A test that has seen enough breaks it off.
  const over = read().then(
    () => true as const,
    () => true as const,
  )
  return { lines, over }
}
