/** theme - light, dark, or the setting of the system, stored in this browser */

export type Theme = 'system' | 'light' | 'dark'

const NAME = 'theme'

/** The chosen theme. */
export function readTheme(): Theme {
  const kept = localStorage.getItem(NAME)
  return kept === 'light' || kept === 'dark' ? kept : 'system'
}

/** Stores the chosen theme and applies it. */
export function chooseTheme(theme: Theme): void {
  if (theme === 'system') localStorage.removeItem(NAME)
  else localStorage.setItem(NAME, theme)
  applyTheme()
}

/** Applies the chosen theme to the page. */
export function applyTheme(): void {
  const theme = readTheme()
  if (theme === 'system') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = theme
}
