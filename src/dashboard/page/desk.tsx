/** desk - the operator's view: another bundle, on the operator's listener, with no cookie */
import './style/style.css'
import { render } from 'preact'
import { applyTheme } from './browser/theme.ts'
import { OperatorConsole } from './operator-console/desk-frame.tsx'

applyTheme()
const root = document.getElementById('page')
if (root !== null) render(<OperatorConsole />, root)
