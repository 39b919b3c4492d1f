/** broken - aggregate reports that are broken in one way each, and the fault of each. */
import { gzipSync } from 'node:zlib'
import { zipSync } from 'fflate'
import { XML } from './layouts.ts'
import {
  DAY_SECONDS,
  dmarcText,
  isoOf,
  makeRandom,
  pack,
  type ReportSample,
  SAMPLE_DOMAIN,
  someRecord,
} from './texts.ts'

/** A report that is broken in one way, and why it cannot be read. */
export function brokenSamples(begin: number): ReportSample[] {
  const record = someRecord(makeRandom(1))
  const good = dmarcText({ organization: 'Broken', reportId: 'broken', begin, declaration: XML }, [record])
  const change = (from: string | RegExp, to: string) => Buffer.from(good.replace(from, to))
  const tls = JSON.stringify({
    'organization-name': 'x',
    'date-range': { 'start-datetime': isoOf(begin), 'end-datetime': isoOf(begin + 1) },
    'report-id': 'x',
    policies: [
      {
        policy: { 'policy-type': 'sts', 'policy-domain': SAMPLE_DOMAIN },
        summary: { 'total-successful-session-count': 1, 'total-failure-session-count': 0 },
      },
    ],
  })
  const json = (from: string | RegExp, to: string) => Buffer.from(tls.replace(from, to))
  const dtd = (inside: string) => change(XML, `${XML}<!DOCTYPE feedback ${inside}>`)
  const laughs = Array.from({ length: 9 }, (_, at) => `<!ENTITY l${at + 1} "${`&l${at};`.repeat(10)}">`).join('')
  const kinds: readonly (readonly [name: string, file: Buffer, issue?: string])[] = [
    ['a DTD', dtd('[<!ENTITY a "b">]'), 'entities'],
    ['a thousand million laughs', dtd(`[<!ENTITY l0 "lol">${laughs}]`), 'entities'],
    ['an external DTD', dtd('SYSTEM "file:///etc/passwd"'), 'entities'],
    ['an unknown entity', change('Broken', 'Broken &secret;'), 'entities'],
    ['no end', Buffer.from(good.slice(0, -30))],
    ['wrong nesting', change('</row>', '</record>')],
    ['nothing but a start', Buffer.from('<?xml version="1.0"?>')],
    ['two roots', Buffer.from(`${good}<feedback/>`)],
    ['another root', Buffer.from(good.replaceAll('feedback', 'feedbacks'))],
    ['no id', change(/<report_id>.*<\/report_id>/, '')],
    ['no domain', change(/<domain>shop.example<\/domain><adkim>/, '<adkim>')],
    ['a domain that is none', change('<domain>shop.example</domain><adkim>', '<domain>a b!</domain><adkim>')],
    ['no period', change(/<date_range>.*<\/date_range>/, '')],
    ['a period in words', change(`<begin>${begin}`, '<begin>yesterday')],
    ['a period that ends first', change(`<end>${begin + DAY_SECONDS - 1}`, `<end>${begin - 1}`)],
    ['no source', change(/<source_ip>.*<\/source_ip>/, '')],
    ['a source that is none', change(/<source_ip>.*<\/source_ip>/, '<source_ip>mail.example</source_ip>')],
    ['no count', change(/<count>.*<\/count>/, '')],
    ['a count below zero', change(/<count>.*<\/count>/, '<count>-5</count>')],
    ['a count with a fraction', change(/<count>.*<\/count>/, '<count>1.5</count>')],
    ['a count beyond mail', change(/<count>.*<\/count>/, '<count>99999999999</count>')],
    ['depth', change('<auth_results>', `<auth_results>${'<a>'.repeat(50)}${'</a>'.repeat(50)}`)],
    ['an unknown encoding', change('UTF-8', 'x-nothing')],
    ['HTML', Buffer.from('<html><body>feedback</body></html>')],
    ['JSON that is cut off', Buffer.from(tls.slice(0, -4))],
    ['a list', Buffer.from(`[${tls}]`)],
    ['policies that are no list', json(/"policies":.*/, '"policies":{}}')],
    ['a policy that is none', json(/"policies":.*/, '"policies":[null]}')],
    ['a session count in words', json('"total-successful-session-count":1', '"total-successful-session-count":"many"')],
    ['no TLS period', json(/"date-range":\{[^}]*\}/, '"date-range":{}')],
    ['no TLS id', json('"report-id":"x"', '"report-id":7')],
  ]
  const broken = ({ name, file, issue }: { name: string; file: Buffer; issue: string }): ReportSample => ({
    name: `broken: ${name}`,
    contentType: 'application/octet-stream',
    fileName: 'report.bin',
    file,
    mailType: 'multipart/mixed',
    reporter: 'broken.example',
    reportId: 'broken',
    content: { issue },
  })
  const zip = pack(Buffer.from(good), 'zip')
  return [
    ...kinds.flatMap(([name, file, issue = 'malformed']) => [
      broken({ name, file, issue }),
      broken({ name: `${name}, packed`, file: pack(file, name.length % 2 === 0 ? 'gzip' : 'zip'), issue }),
    ]),
    broken({ name: 'gzip that is cut off', file: gzipSync(good).subarray(0, 100), issue: 'malformed' }),
    broken({ name: 'gzip with a wrong sum', file: flipped(gzipSync(good), -6), issue: 'malformed' }),
    broken({ name: 'a zip file that is cut off', file: zip.subarray(0, 100), issue: 'malformed' }),
    broken({
      name: 'an empty zip file',
      file: Buffer.from(zipSync({ 'folder/': new Uint8Array() })),
      issue: 'malformed',
    }),
    broken({ name: 'a report packed twice', file: gzipSync(gzipSync(good)), issue: 'malformed' }),
  ]
}

function flipped(bytes: Buffer, at: number): Buffer {
  const copy = Buffer.from(bytes)
  const place = at < 0 ? copy.length + at : at
  copy[place] = (copy[place] as number) ^ 0xff
  return copy
}
