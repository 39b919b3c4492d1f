/**
 * config - the documentation site: `npm run docs` builds it into build/docs, which the service serves under /docs
 *
 * Nothing in the built site is fetched from elsewhere: fonts, the search index and Redoc are files of the site.
 */
import { defineConfig } from 'vitepress'
import { plainMarkdown, slugify } from './markdown.mjs'
import { finishSite } from './outputs.mjs'
import { SIDEBAR } from './sidebar.mjs'

const HTTP_API = { text: 'HTTP API', link: '/http-api/', target: '_self' }

const ICON =
  "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 24 24' fill='none' stroke='%235a6ce0' stroke-width='2.4' stroke-linecap='round' stroke-linejoin='round'%3E%3Cpath d='M3 6v12h18V6l-9 7z'/%3E%3C/svg%3E"

export default defineConfig({
  title: 'Sendwright',
  description: 'Documentation of Sendwright, a transactional email service that you run yourself',
  lang: 'en-US',
  base: '/docs/',
  outDir: '../build/docs',
  cacheDir: '../build/.vitepress',
  cleanUrls: true,
  head: [['link', { rel: 'icon', href: ICON }]],
  // Prefetching every link in view would use up the request rate of one client.
  router: { prefetchLinks: false },
  markdown: {
    config: plainMarkdown,
    anchor: { slugify },
    languageAlias: { caddy: 'nginx' },
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
  },
  ignoreDeadLinks: [/^\/http-api\//],
  vite: { logLevel: 'warn' },
  themeConfig: {
    search: { provider: 'local' },
    outline: { level: [2, 3] },
    nav: SIDEBAR.map(({ title, pages }) => ({ text: title, link: `/${pages[0].path}` })),
    sidebar: SIDEBAR.map(({ title, pages }) => ({
      text: title,
      items: [
        ...(title === 'Reference' ? [HTTP_API] : []),
        ...pages.map(({ path, text }) => ({ text, link: `/${path}` })),
      ],
    })),
  },
  buildEnd: finishSite,
})
