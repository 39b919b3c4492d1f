/** definition-list - a list of names and values */
import type { ComponentChildren } from 'preact'
import { Fragment } from 'preact'

/** Pairs; those whose value is null are left out. */
export function DefinitionList({ of }: { of: readonly (readonly [name: string, value: ComponentChildren])[] }) {
  return (
    <dl class="pairs padded">
      {of
        .filter(([, value]) => value !== null && value !== undefined)
        .map(([name, value]) => (
          <Fragment key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </Fragment>
        ))}
    </dl>
  )
}
