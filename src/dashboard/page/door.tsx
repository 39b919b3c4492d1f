/** door - the pages without a session: signing in, links, and a forgotten password */
import './style/style.css'
import { render } from 'preact'
import { applyTheme } from './browser/theme.ts'
import { Door } from './door/door-page.tsx'

applyTheme()
const root = document.getElementById('page')
if (root !== null) render(<Door />, root)
