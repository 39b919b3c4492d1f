/** theme - light, dark, or as the system has it; kept in this browser */

export type Theme = 'system' | 'light' | 'dark'

const NAME = 'theme'

/** The chosen theme. */
export function readTheme(): Theme {
  const kept = localStorage.getItem(NAME)
  return kept === 'light' || kept === 'dark' ? kept : 'system'
}

/** Chooses. */
export function chooseTheme(theme: Theme): void {
  if (theme === 'system') localStorage.removeItem(NAME)
  else localStorage.setItem(NAME, theme)
  applyTheme()
}

/** Shows the page as chosen. */
export function applyTheme(): void {
  const theme = readTheme()
  if (theme === 'system') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = theme
}
