/** door - the pages without a session: signing in, links, and a forgotten password */
import './style/style.css'
import { render } from 'preact'
import { AuthPages } from './auth/door-page.tsx'
import { applyTheme } from './browser/theme.ts'

applyTheme()
const root = document.getElementById('page')
if (root !== null) render(<AuthPages />, root)
