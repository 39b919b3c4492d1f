/** mail-frame - a mail as it looks, in a frame that may do nothing: no script, no form, nothing from elsewhere */

interface MailFrameProps {
  readonly serverId: string
  readonly id: string
  readonly isPhone?: boolean
  readonly hasImages?: boolean
  /** On a test server links open. */
  readonly isTest?: boolean
}

/** The frame. */
export function MailFrame({ serverId, id, isPhone = false, hasImages = false, isTest = false }: MailFrameProps) {
  const path = `/dashboard/mail/${serverId}/${id}${hasImages ? '?images=remote' : ''}`
  return (
    <div class="mail">
      <iframe
        title="The rendered message"
        // Set before the address, so that the frame always has it.
        sandbox={isTest ? 'allow-popups' : ''}
        src={path}
        class={isPhone ? 'phone' : ''}
        loading="lazy"
        referrerpolicy="no-referrer"
      />
    </div>
  )
}
