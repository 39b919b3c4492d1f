/** card - the container of a page's content, with its loading, error and empty states */
import type { ComponentChildren } from 'preact'
import { useId } from 'preact/hooks'
import type { ApiError } from '../api/call.ts'
import type { Loaded } from '../api/load.ts'
import { Button } from './button.tsx'
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

interface ShownProps<Value> {
  readonly of: Loaded<Value>
  readonly lines?: number
  readonly children: (value: Value) => ComponentChildren
}

/** Loaded data, or its loading or error state. */
export function Shown<Value>({ of, lines, children }: ShownProps<Value>) {
  const { value, error, reload } = of
  return (
    <>
      {error !== null && <Fault error={error} onRetry={reload} />}
      {value !== null ? children(value) : error === null && <Skeleton {...(lines !== undefined && { lines })} />}
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
