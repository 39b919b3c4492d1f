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

export default defineConfig({
  title: 'Sendwright',
  description: 'Documentation of Sendwright, a transactional email service that you run yourself',
  lang: 'en-US',
  base: '/docs/',
  outDir: '../build/docs',
  cacheDir: '../build/.vitepress',
  cleanUrls: true,
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
