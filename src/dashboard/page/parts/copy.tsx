/** copy - values to take along: ids, records, commands */
import { useState } from 'preact/hooks'
import { wordsOfName } from '../api/words.ts'
import { Button } from './button.tsx'
import { Icon } from './icon.tsx'

const SAID_MS = 2000

/** Puts a text on the clipboard. Returns the copy function, and whether it was used just now. */
export function useCopy(): [copy: (text: string) => void, isCopied: boolean] {
  const [isCopied, setCopied] = useState(false)
  const copy = (text: string) => {
    navigator.clipboard.writeText(text).then(
      () => {
        setCopied(true)
        setTimeout(() => setCopied(false), SAID_MS)
      },
      // Without the right to the clipboard the text can still be marked.
      () => setCopied(false),
    )
  }
  return [copy, isCopied]
}

/** A value that a press copies. Takes the text shown instead. */
export function CopyValue({ value, label, shown = value }: { value: string; label: string; shown?: string }) {
  const [copy, isCopied] = useCopy()
  return (
    <button type="button" class="copy" title={`Copy ${label}`} onClick={() => copy(value)}>
      <span class="unseen">Copy {label} </span>
      <span>{shown}</span>
      <Icon name={isCopied ? 'check' : 'copy'} size={13} />
    </button>
  )
}

/** Lines of code with a button that copies them. */
export function Code({ text, label }: { text: string; label: string }) {
  const [copy, isCopied] = useCopy()
  return (
    <div class="code">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is reached by the keyboard. */}
      <pre tabIndex={0}>{text}</pre>
      <button type="button" class="button" onClick={() => copy(text)}>
        <Icon name={isCopied ? 'check' : 'copy'} size={14} />
        {isCopied ? 'Copied' : 'Copy'} <span class="unseen">{label}</span>
      </button>
    </div>
  )
}

/** A button that copies. Takes the text, or a function that reads it. */
export function CopyButton({ text, children }: { text: string | (() => Promise<string>); children: string }) {
  const [copy, isCopied] = useCopy()
  const press = async () => copy(typeof text === 'string' ? text : await text())
  return (
    <Button icon={isCopied ? 'check' : 'copy'} onPress={press}>
      {isCopied ? 'Copied' : children}
    </Button>
  )
}

/** The first target of an action, cut, with its name; a press copies it. */
export function TargetId({ targets }: { targets: Readonly<Record<string, string>> }) {
  const [first] = Object.entries(targets)
  if (first === undefined) return null
  const [name, value] = first
  const word = wordsOfName(name.replace(/Id$/, ''))
  return <CopyValue value={value} shown={`${word} ${value.slice(0, 8)}…`} label={word.toLowerCase()} />
}
