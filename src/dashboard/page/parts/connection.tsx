/** connection - a line above the page while the service cannot be reached */
import { isLost } from '../api/connection.ts'
import { Icon } from './icon.tsx'

/** The line; it is there before its text, so that the text is read out. */
export function ConnectionLine() {
  return (
    <div class="connection" role="status">
      {isLost.value && (
        <p>
          <Icon name="alert" />
          Connection lost. Shown data may be out of date. Retrying …
        </p>
      )}
    </div>
  )
}
