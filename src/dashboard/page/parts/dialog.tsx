/** dialog - modal questions: the browser's own dialog element, with its keyboard handling */
import { signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef } from 'preact/hooks'
import { Button, IconButton } from './button.tsx'

interface DialogProps {
  readonly title: string
  readonly onClose: () => void
  readonly children: ComponentChildren
  readonly isWide?: boolean
}

/** A dialog, open while it is mounted. */
export function Dialog({ title, onClose, children, isWide = false }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  const id = useId()
  useEffect(() => {
    const shown = dialog.current
    shown?.showModal()
    return () => shown?.close()
  }, [])
  return (
    <dialog ref={dialog} class={isWide ? 'wide' : ''} aria-labelledby={id} onCancel={onClose} onClose={onClose}>
      <header>
        <h2 id={id}>{title}</h2>
        <IconButton icon="close" label="Close" onPress={onClose} />
      </header>
      {children}
    </dialog>
  )
}

interface Question {
  readonly title: string
  readonly text: string
  /** The action, as the label of the button. */
  readonly act: string
  readonly isDanger?: boolean
  readonly answer: (isMeant: boolean) => void
}

const asked = signal<Question | null>(null)

/** Asks the user to confirm an action. Returns whether they did. */
export function ask(question: Omit<Question, 'answer'>): Promise<boolean> {
  return new Promise((resolve) => {
    asked.value = { ...question, answer: resolve }
  })
}

/** The container of questions, once per page. */
export function Questions() {
  const question = asked.value
  if (question === null) return null
  const answer = (isMeant: boolean) => {
    asked.value = null
    question.answer(isMeant)
  }
  return (
    <Dialog title={question.title} onClose={() => answer(false)}>
      <p class="dialog-text">{question.text}</p>
      <footer>
        <Button onPress={() => answer(false)}>Cancel</Button>
        <Button kind={question.isDanger ? 'danger' : 'main'} onPress={() => answer(true)}>
          {question.act}
        </Button>
      </footer>
    </Dialog>
  )
}
