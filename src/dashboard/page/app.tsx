/** app - the pages of who is signed in: each in a chunk of its own, the message page in the first */
import './style/style.css'
import { render } from 'preact'
import { applyTheme } from './browser/theme.ts'
import { openApp } from './frame/app-frame.tsx'

applyTheme()
const root = document.getElementById('page')
if (root !== null) render(openApp(), root)
