/**
 * client-support - writes src/mail/check/client-support.ts from the data of caniemail.com
 *
 * `npm pack caniemail` has the data: node src/service/pack/client-support.mjs <data/caniemail.json>
 */
import { readFileSync, writeFileSync } from 'node:fs'

const NAME = 'CLIENT_SUPPORT'
/** Shares of clients in percent; a feature that fewer clients drop is not worth a finding. */
const DROPPED_MIN = 10
const SEMANTIC = 'article aside details figcaption figure footer header main mark nav section summary time'
/** Features whose names say less than is looked for. */
const NAMED = {
  'html-lists': null,
  'html-h1-h6': null,
  'html-body': null,
  'html-doctype': null,
  'html-comments': null,
  'html-semantics': ['element', SEMANTIC],
  'html-address': ['element', 'address'],
  'html-base': ['element', 'base'],
  'html-image-maps': ['element', 'map'],
  'html-svg': ['element', 'svg'],
  'html-srcset': ['attribute', 'srcset sizes'],
  'html-anchor-links': ['anchor', '#'],
  'html-mailto-links': null,
  'html-meta-color-scheme': null,
  'css-display-flex': ['value', 'display:flex'],
  'css-display-grid': ['value', 'display:grid'],
  'css-display': null,
  'css-flex-direction': ['property', 'flex-direction'],
  'css-flex-wrap': ['property', 'flex-wrap'],
  'css-gap': ['property', 'gap column-gap row-gap'],
  'css-grid-template': ['property', 'grid-template-columns grid-template-rows grid-template-areas grid-template'],
  'css-left-right-top-bottom': null,
  'css-color-scheme': ['property', 'color-scheme'],
  'css-variables': ['function', 'var'],
  'css-unit-calc': ['function', 'calc'],
  'css-modern-color': ['function', 'lch oklch lab oklab'],
  'css-block-inline-size': ['property', 'block-size inline-size'],
  'css-important': null,
  'css-inert-attribute': null,
}
const IMAGES = { apng: 'apng', avif: 'avif', bmp: 'bmp', heif: 'heif heic', svg: 'svg', tiff: 'tif tiff', webp: 'webp' }

const { data, last_update_date: updated } = JSON.parse(readFileSync(process.argv[2], 'utf8'))
const rows = data.flatMap((feature) => {
  const place = placeOf(feature)
  const { full, partial, none } = sharesOf(feature.stats)
  return place === null || none < DROPPED_MIN ? [] : [[...place, feature.title, full, partial, none, feature.slug]]
})
writeFileSync(
  new URL('../../mail/check/client-support.ts', import.meta.url),
  `/**
 * client-support - which features of HTML and CSS mail clients drop, and how many clients do
 *
 * Made by src/service/pack/client-support.mjs from the data of https://www.caniemail.com of
 * ${updated.slice(0, 10)}, which is under the MIT License, Copyright (c) 2019 Hteumeuleu. Shares are percent of
 * clients, each counted once.
 */

type Kind = 'element' | 'attribute' | 'pair' | 'anchor' | 'property' | 'value' | 'at' | 'pseudo' | 'function' | 'unit' | 'image'

/** What is looked for, its names, its title, clients with full, partial and no support, its page. */
type SupportRow = readonly [Kind, string, string, number, number, number, string]

/** The features that at least ${DROPPED_MIN} percent of clients drop. */
export const ${NAME}: readonly SupportRow[] = [
${rows.map((row) => `  ${JSON.stringify(row)},`).join('\n')}
]
`,
)

function placeOf({ slug, title, category }) {
  if (slug in NAMED) return NAMED[slug]
  if (category === 'image') return slug.slice(6) in IMAGES ? ['image', IMAGES[slug.slice(6)]] : null
  const element = /^<(\w+)> element$/.exec(title)
  if (element !== null) return ['element', element[1]]
  const pair = /^<(\w+) (\w+)="(\w+)"> element$/.exec(title)
  if (pair !== null) return ['pair', `${pair[1]} ${pair[2]} ${pair[3]}`]
  const attribute = /^([\w-]+) attribute$/.exec(title)
  if (attribute !== null) return ['attribute', attribute[1]]
  if (category !== 'css') return null
  if (slug.startsWith('css-unit-'))
    return /^\w+ unit$/.test(title) && title !== 'initial unit' ? ['unit', title.split(' ')[0]] : null
  if (slug.startsWith('css-pseudo-')) return /^:[\w-]+/.test(title) ? ['pseudo', title.replace(/[:()]/g, '')] : null
  const at = /^@([\w-]+)$/.exec(title)
  if (at !== null) return ['at', at[1]]
  const media = /^@media \((?:-webkit-)?([\w-]+)\)/.exec(title)
  if (media !== null) return ['at', `media ${media[1]}`]
  const called = /^([\w-]+)\(\)$/.exec(title)
  if (called !== null) return ['function', called[1]]
  const property = /^([a-z-]+)(?: property)?\s*$/.exec(title)
  return property === null || slug === 'css-font-size' ? null : ['property', property[1]]
}

/** The last version of each client that was tested. */
function sharesOf(stats) {
  const counts = { y: 0, a: 0, n: 0 }
  for (const family of Object.values(stats))
    for (const versions of Object.values(family)) {
      const last = Object.values(versions).at(-1)?.[0]
      if (last in counts) counts[last] += 1
    }
  const all = counts.y + counts.a + counts.n
  const share = (count) => Math.round((100 * count) / Math.max(1, all))
  return { full: share(counts.y), partial: share(counts.a), none: share(counts.n) }
}
