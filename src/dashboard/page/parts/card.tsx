/** card - the container of a page's content, with its loading, error and empty states */
import type { ComponentChildren } from 'preact'
import { useId } from 'preact/hooks'
import type { ApiError } from '../api/call.ts'
import type { Loaded } from '../api/load.ts'
import { Button, LinkButton } from './button.tsx'
import { Icon, type IconName } from './icon.tsx'

interface CardProps {
  readonly title?: string
  /** At the right of the title. */
  readonly side?: ComponentChildren
  readonly children: ComponentChildren
}

/** A framed part of a page. */
export function Card({ title, side, children }: CardProps) {
  const id = useId()
  return (
    <section class="card" aria-labelledby={title === undefined ? undefined : id}>
      {title !== undefined && (
        <header>
          <h2 id={id}>{title}</h2>
          {side !== undefined && <div class="side-of">{side}</div>}
        </header>
      )}
      {children}
    </section>
  )
}

interface EmptyProps {
  readonly icon: IconName
  readonly title: string
  readonly children?: ComponentChildren
}

/** The empty state of a list, with its purpose and the way to fill it. */
export function Empty({ icon, title, children }: EmptyProps) {
  return (
    <div class="empty">
      <span class="node quiet">
        <Icon name={icon} />
      </span>
      <b>{title}</b>
      {children}
    </div>
  )
}

/** A failed read, with its Request-Id, and a retry. */
export function Fault({ error, onRetry }: { error: ApiError; onRetry?: () => void }) {
  return (
    <div class="fault" role="alert">
      <Icon name="alert" />
      <div>
        <b>{error.message}</b>
        {error.requestId !== null && <p>Request {error.requestId}</p>}
      </div>
      {onRetry && (
        <Button icon="refresh" onPress={onRetry}>
          Retry
        </Button>
      )}
    </div>
  )
}

/** Grey lines while data is loading. */
export function Skeleton({ lines = 4 }: { lines?: number }) {
  return (
    <div class="skeleton" role="status" aria-label="Loading">
      {Array.from({ length: lines }, (_, at) => (
        <span key={at} />
      ))}
    </div>
  )
}

/** The heading of a page whose subject could not be read, and the list that it belongs to. */
interface Subject {
  /** Such as `Message`. */
  readonly word: string
  readonly back: { readonly word: string; readonly href: string }
}

interface ShownProps<Value> {
  readonly of: Loaded<Value>
  readonly lines?: number
  /** If it is the subject of the page. */
  readonly subject?: Subject
  readonly children: (value: Value) => ComponentChildren
}

/** Loaded data, or its loading or error state. */
export function Shown<Value>({ of, lines, subject, children }: ShownProps<Value>) {
  const { value, error, reload } = of
  if (subject !== undefined && value === null && error !== null)
    return <Missing subject={subject} error={error} onRetry={reload} />
  return (
    <>
      {error !== null && <Fault error={error} onRetry={reload} />}
      {value !== null ? children(value) : error === null && <Skeleton {...(lines !== undefined && { lines })} />}
    </>
  )
}

/** In place of a page without its subject: a retry helps unless there is none. */
function Missing({ subject, error, onRetry }: { subject: Subject; error: ApiError; onRetry: () => void }) {
  const { word, back } = subject
  const isGone = error.status === 404 || error.status === 400
  return (
    <>
      <Head title={isGone ? `${word} not found` : `${word} could not be read`} />
      <div class="card">
        {isGone ? (
          <Empty icon="search" title={`No ${word.toLowerCase()} has this address`}>
            <p>It may have been removed, be past its retention, or belong to another server.</p>
            <LinkButton href={back.href}>{back.word}</LinkButton>
          </Empty>
        ) : (
          <>
            <Fault error={error} onRetry={onRetry} />
            <footer class="more">
              <LinkButton href={back.href}>{back.word}</LinkButton>
            </footer>
          </>
        )}
      </div>
    </>
  )
}

interface HeadProps {
  readonly title: string
  readonly meta?: ComponentChildren
  readonly children?: ComponentChildren
}

/** The head of a page, with its subject and actions. */
export function Head({ title, meta, children }: HeadProps) {
  return (
    <div class="head">
      <div>
        <h1 title={title}>
          <bdi>{title}</bdi>
        </h1>
        {meta !== undefined && <div class="meta">{meta}</div>}
      </div>
      {children !== undefined && <div class="acts">{children}</div>}
    </div>
  )
}
