/** theme - the default theme of VitePress, with colors that pass the contrast rules of WCAG */
import DefaultTheme from 'vitepress/theme'
import './contrast.css'

export default DefaultTheme
