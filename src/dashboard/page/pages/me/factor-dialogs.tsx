/** factor-dialogs - second factors are set up: the picture for an authenticator, a passkey, codes shown once */

import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import qrcode from 'qrcode-generator'
import type { Passkey, TotpBegun } from '../../../../../schemas/dashboard/me.ts'
import { call } from '../../api/call.ts'
import { useLoad } from '../../api/load.ts'
import { makePasskey, renamePasskey } from '../../api/passkey.ts'
import { Button } from '../../parts/button.tsx'
import { Shown } from '../../parts/card.tsx'
import { Code, CopyValue } from '../../parts/copy.tsx'
import { Dialog } from '../../parts/dialog.tsx'
import { Field, Form } from '../../parts/form.tsx'

/** Props of a dialog of this card. */
export interface FactorDialogProps {
  readonly onClose: () => void
  /** The passkey to rename; null in other dialogs. */
  readonly passkey: Passkey | null
}

/** Sets up an authenticator, first with the secret as a QR code and as text, then with its first code. */
export function NewAuthenticator({ onClose }: FactorDialogProps) {
  const [codes, setCodes] = useState<Made>(null)
  const begun = useLoad<TotpBegun>(() => call('POST', '/me/totp'), [])
  return (
    <Steps title="Set up an authenticator" codes={codes} onClose={onClose}>
      <Shown of={begun}>
        {(shown) => <FirstCode begun={shown} onDone={(made) => (made === null ? onClose() : setCodes(made))} />}
      </Shown>
    </Steps>
  )
}

/** One dialog, which finally shows the recovery codes, if there are new ones. */
function Steps({
  title,
  codes,
  onClose,
  children,
}: {
  title: string
  codes: Made
  onClose: () => void
  children: ComponentChildren
}) {
  return (
    <Dialog title={codes === null ? title : 'Your recovery codes'} onClose={onClose}>
      {codes === null ? children : <Codes codes={codes} onClose={onClose} />}
    </Dialog>
  )
}

type Made = readonly string[] | null

function FirstCode({ begun, onDone }: { begun: TotpBegun; onDone: (codes: Made) => void }) {
  const [code, setCode] = useState('')
  const { secret, url, challenge } = begun
  const send = async () => {
    const body = { challenge, code: code.trim() }
    onDone((await call<{ recoveryCodes: Made }>('POST', '/me/totp/confirm', { body })).recoveryCodes)
  }
  return (
    <>
      <p class="dialog-text">Scan the code with your authenticator, or type the key. Then enter the current code.</p>
      <Picture text={url} />
      <p class="dialog-text">
        <CopyValue value={secret} label="the key" shown={(secret.match(/.{1,4}/g) ?? []).join(' ')} />
      </p>
      <Form act="Turn it on" onSend={send}>
        <Field
          name="code"
          label="Six digits"
          inputMode="numeric"
          autocomplete="one-time-code"
          value={code}
          onChange={setCode}
          autofocus
        />
      </Form>
    </>
  )
}

/** A QR code, dark on light in both schemes: cameras want it so. */
function Picture({ text }: { text: string }) {
  const code = qrcode(0, 'M')
  code.addData(text)
  code.make()
  const size = code.getModuleCount()
  const rows = Array.from({ length: size }, (_, y) =>
    Array.from({ length: size }, (_, x) => (code.isDark(y, x) ? `M${x} ${y}h1v1h-1z` : '')).join(''),
  )
  return (
    <svg class="qr" viewBox={`-4 -4 ${size + 8} ${size + 8}`} role="img" aria-label="The key as a QR code">
      <rect class="qr-ground" x="-4" y="-4" width={size + 8} height={size + 8} />
      <path class="qr-mark" d={rows.join('')} />
    </svg>
  )
}

/** A passkey is made by the browser, after a name for it. */
export function NewPasskey({ onClose }: FactorDialogProps) {
  const [name, setName] = useState('')
  const [codes, setCodes] = useState<Made>(null)
  const send = async () => {
    const { recoveryCodes } = await makePasskey(name)
    if (recoveryCodes === null) onClose()
    else setCodes(recoveryCodes)
  }
  return (
    <Steps title="Add a passkey" codes={codes} onClose={onClose}>
      <Form act="Go on" onSend={send}>
        <Field
          name="name"
          label="Name"
          value={name}
          onChange={setName}
          hint="Name of the device, such as “my phone”. The browser asks for the rest."
          autofocus
        />
      </Form>
    </Steps>
  )
}

/** A passkey gets another name. */
export function OtherName({ passkey, onClose }: FactorDialogProps) {
  const [name, setName] = useState(passkey?.name ?? '')
  const send = async () => {
    if (passkey !== null) await renamePasskey(passkey.passkeyId, name)
    onClose()
  }
  return (
    <Dialog title="Rename the passkey" onClose={onClose}>
      <Form act="Rename" onSend={send}>
        <Field name="name" label="Name" value={name} onChange={setName} autofocus />
      </Form>
    </Dialog>
  )
}

/** New recovery codes; the previous ones stop working. */
export function NewCodes({ onClose }: FactorDialogProps) {
  const [codes, setCodes] = useState<Made>(null)
  const send = async () =>
    setCodes((await call<{ recoveryCodes: string[] }>('POST', '/me/recovery-codes')).recoveryCodes)
  return (
    <Steps title="New recovery codes" codes={codes} onClose={onClose}>
      <p class="dialog-text">New codes replace the ones that you have.</p>
      <Form act="Make new codes" onSend={send}>
        {null}
      </Form>
    </Steps>
  )
}

function Codes({ codes, onClose }: { codes: readonly string[]; onClose: () => void }) {
  return (
    <>
      <p class="dialog-text">
        Store them somewhere other than this device. Each code works once. They are shown only now.
      </p>
      <Code text={codes.join('\n')} label="the codes" />
      <footer>
        <Button kind="main" onPress={onClose}>
          I have them
        </Button>
      </footer>
    </>
  )
}
