/** app - the pages of signed-in users, each in its own chunk, the message page in the first */
import './style/style.css'
import { render } from 'preact'
import { applyTheme } from './browser/theme.ts'
import { openApp } from './frame/app-frame.tsx'

applyTheme()
const root = document.getElementById('page')
if (root !== null) render(openApp(), root)
