/** bar - the position of the page, and the search */
import type { ComponentChildren } from 'preact'
import { Link, useLocation } from 'wouter-preact'
import { crumbs } from '../browser/crumbs.ts'
import { Icon } from '../parts/icon.tsx'
import { Finder, openFinder } from './find.tsx'

/** The bar. */
export function Bar() {
  useLocation()
  return (
    <div class="bar">
      <button type="button" class="menu button bare icon" popoverTarget="side" aria-label="Menu">
        <Icon name="menu" size={18} />
      </button>
      <nav class="crumbs" aria-label="Place">
        {crumbs.value.flatMap((crumb, at): ComponentChildren[] => [
          at > 0 && (
            <span key={`${crumb.word} /`} class="slash" aria-hidden="true">
              /
            </span>
          ),
          crumb.href === undefined ? (
            <span key={crumb.word} aria-current="page" dir="auto">
              {crumb.word}
            </span>
          ) : (
            <Link key={crumb.word} href={crumb.href}>
              {crumb.word}
            </Link>
          ),
        ])}
      </nav>
      <button type="button" class="find" onClick={openFinder}>
        <Icon name="search" />
        <span>Name, address, id or action</span>
        <kbd>Ctrl K</kbd>
      </button>
      <Finder />
    </div>
  )
}
