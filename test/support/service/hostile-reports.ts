/** hostile-reports - mail to the addresses that take reports, made so that parsing it takes long */

export const HOSTILE_REPORTS = {
  blanks: `X-A: a${' '.repeat(150_000)}b\n\ntext`,
  folds: `X-A: a${'\t\n '.repeat(50_000)}b\n\ntext`,
  words: `Subject: ${'=?utf-8?q?a?= '.repeat(10_000)}\n\ntext`,
  parts: `Content-Type: multipart/mixed; boundary=b\n\n${'--b\nContent-Type: message/rfc822\n\n'.repeat(6_000)}`,
  boundaries: `Content-Type: multipart/mixed; boundary=b\n\n${'--bx\n'.repeat(40_000)}`,
  tags: `Content-Type: text/html\n\n${'<a '.repeat(60_000)}`,
  codes: `From: <>\nSubject: Undelivered\n\n${'550 5.1.1 '.repeat(15_000)}`,
  fields: `Content-Type: multipart/report; boundary=b\n\n--b\nContent-Type: message/delivery-status\n\n${'Action: failed\n\n'.repeat(10_000)}`,
}
