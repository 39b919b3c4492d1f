/** verifying-code - the code with which an application verifies that a post is from here */
import { Card } from '../../parts/card.tsx'
import { Code } from '../../parts/copy.tsx'
import { Tabs } from '../../parts/tabs.tsx'

const NODE = `import { createHmac, timingSafeEqual } from 'node:crypto'

// body: the raw bytes, before parsing.
export function isGenuine(body, header, secret) {
  const parts = header.split(',').map((part) => part.split('='))
  const time = parts.find(([name]) => name === 't')?.[1]
  if (Math.abs(Date.now() / 1000 - Number(time)) > 300) return false
  const own = createHmac('sha256', secret).update(time + '.').update(body).digest()
  return parts.some(([name, hex]) => {
    const theirs = Buffer.from(hex ?? '', 'hex')
    return name === 'v1' && theirs.length === own.length && timingSafeEqual(theirs, own)
  })
}`

const PYTHON = `import hashlib, hmac, time

# body: the bytes as they came, before anything parses them.
def is_genuine(body: bytes, header: str, secret: str) -> bool:
    parts = [part.split("=", 1) for part in header.split(",")]
    at = next(value for name, value in parts if name == "t")
    if abs(time.time() - int(at)) > 300:
        return False
    own = hmac.new(secret.encode(), at.encode() + b"." + body, hashlib.sha256).hexdigest()
    return any(name == "v1" and hmac.compare_digest(value, own) for name, value in parts)`

const PHP = `// $body: the bytes as they came, before anything parses them.
function is_genuine(string $body, string $header, string $secret): bool {
    preg_match('/t=(\\d+)/', $header, $at);
    if (abs(time() - (int) $at[1]) > 300) return false;
    $own = hash_hmac('sha256', $at[1] . '.' . $body, $secret);
    preg_match_all('/v1=([0-9a-f]+)/', $header, $theirs);
    foreach ($theirs[1] as $one) if (hash_equals($own, $one)) return true;
    return false;
}`

/** The card. */
export function VerifyingCode() {
  const tabs = (
    [
      ['JavaScript', NODE],
      ['Python', PYTHON],
      ['PHP', PHP],
    ] as const
  ).map(([name, text]) => ({ name, view: () => <Code text={text} label="the code" /> }))
  return (
    <Card title="Verify signatures">
      <p class="note first">
        The header <code>Service-Signature</code> carries the time and an HMAC-SHA256 over time and body for each
        secret.
      </p>
      <Tabs label="Languages" tabs={tabs} />
    </Card>
  )
}
