/**
 * notices - the licences of all packages whose code is in the archive, as one text
 *
 * Packages that are installed beside the service, and packages whose code is in the bundles of the dashboard and of the
 * documentation. Equal texts are printed once. A package without a text of its licence ends the run, unless it is named
 * here.
 */
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { LICENSE } from './modules.mjs'

/** Their code is in the documentation site. */
const IN_SITE = [
  '@docsearch/css',
  'vitepress',
  'vue',
  '@vue/reactivity',
  '@vue/runtime-core',
  '@vue/runtime-dom',
  '@vue/shared',
  '@vueuse/core',
  '@vueuse/integrations',
  '@vueuse/shared',
  'focus-trap',
  'mark.js',
  'minisearch',
  'tabbable',
  'redoc',
]
/** Licences of the code that such a package has bundled itself. */
const BUNDLED_IN = { redoc: 'bundles/redoc.standalone.js.LICENSE.txt' }
/** Packages without a licence text, whose package.json names the licence and its holder. */
const NAMED_ONLY = {
  '@docsearch/css': mitTextOf,
  '@nodable/entities': mitTextOf,
  'qrcode-generator': mitTextOf,
  'wouter-preact': () => 'Released into the public domain under the terms of https://unlicense.org',
}

const REPACKED = 'uWebSockets.js'
/** Carries the text of the Apache License 2.0 that the repacked library lacks. */
const APACHE_FROM = '@opentelemetry/api'

const HEAD = `Third-party notices

The archive of Sendwright contains code of the packages below. Each is under its own licence. A machine-readable list
of the installed packages is in sbom.cdx.json (CycloneDX).
`

const REPACKED_NOTE = `The package uws-pack repacks uWebSockets.js (https://github.com/uNetworking/uWebSockets.js), which is
under the Apache License 2.0:

  µWebSockets.js - JavaScript web server
  Copyright © 2018 Alex Hultman and contributors.

The version of uWebSockets.js cannot be determined: its native modules contain only the text "uWebSockets/20", and
uws-pack names no other. They also contain µSockets (Apache License 2.0), BoringSSL (ISC and Apache License 2.0), lsquic
(MIT) and zlib or libdeflate (zlib, MIT). SHA256SUMS has the digest of each module. The text of the MIT licence below is
that of uws-pack.
`

/** Data whose package is not installed: a table of the service is derived from it. */
const DATA = { label: 'caniemail.com (src/mail/check/client-support.ts)', holder: '2019 Hteumeuleu' }

/**
 * The text. Takes the project's folder, paths of installed packages, and paths of packages in the dashboard's bundles.
 * Throws Error if a package has no text.
 */
export function noticesOf(root, installed, bundled) {
  const paths = new Set([...installed, ...bundled, ...IN_SITE.map((name) => `node_modules/${name}`)])
  const packages = [...paths].sort().map((path) => read(root, path))
  const texts = new Map()
  for (const { label, licenses } of packages)
    for (const text of licenses) {
      const key = createHash('sha256').update(text.replace(/\s+/g, ' ')).digest('hex')
      const known = texts.get(key) ?? { labels: [], text }
      known.labels.push(label)
      texts.set(key, known)
    }
  const list = packages.map(({ label, license }) => `- ${label}: ${license}`).join('\n')
  const parts = [...texts.values()].map(({ labels, text }) => `${labels.join(', ')}\n\n${text.trim()}`)
  const data = `${DATA.label}\n\n${mitTextOf(DATA.holder)}`
  return `${[`${HEAD}\n${list}`, `${REPACKED}\n\n${REPACKED_NOTE.trim()}`, ...parts, data].join(`\n\n${'-'.repeat(80)}\n\n`)}\n`
}

function read(root, path) {
  const folder = join(root, path)
  const { name, version, license, author } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const files = readdirSync(folder).filter((one) => LICENSE.test(one))
  const more = BUNDLED_IN[name] === undefined ? [] : [BUNDLED_IN[name]]
  const licenses = [...files, ...more].map((one) => readFileSync(join(folder, one), 'utf8'))
  if (path.endsWith(`/${REPACKED}`)) licenses.push(apacheText(root))
  if (licenses.length === 0) {
    if (NAMED_ONLY[name] === undefined) throw new Error(`${path} has no text of its licence (${license})`)
    licenses.push(NAMED_ONLY[name](typeof author === 'string' ? author : (author?.name ?? 'its authors')))
  }
  return { label: `${name} ${version}`, license: license ?? 'see its text', licenses }
}

function apacheText(root) {
  const path = join(root, 'node_modules', APACHE_FROM, 'LICENSE')
  if (!existsSync(path)) throw new Error(`${path} is missing: it has the text of the Apache License 2.0`)
  return readFileSync(path, 'utf8')
}

function mitTextOf(holder) {
  return `MIT License

Copyright (c) ${holder}

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
documentation files (the "Software"), to deal in the Software without restriction, including without limitation the
rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit
persons to whom the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the
Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.`
}
