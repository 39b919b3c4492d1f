/** card - what a page's content stands in, and what stands there while it comes, fails or is none */
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

/** What stands where a list is empty: what it would hold, and what fills it. */
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

/** What could not be read, with what finds it in the log, and another try. */
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

/** Grey lines in place of what is on its way. */
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

/** What was loaded, or that it comes, or that it failed. */
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

/** The head of a page: what it is about, and what can be done. */
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
