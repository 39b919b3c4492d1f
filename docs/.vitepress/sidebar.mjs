/** sidebar - every page of the site, in reading order: the menu, the "next page" links and llms.txt follow it */

/** Group title -> pages as [path below docs/, menu text]. */
const GROUPS = {
  Start: [
    ['start/quick-start', 'Quick start'],
    ['start/first-email', 'Send your first email'],
    ['start/smtp', 'Send over SMTP'],
    ['start/testing', 'Test your emails'],
    ['start/ci', 'Test in CI'],
  ],
  Guides: [
    ['guides/sending', 'Sending'],
    ['guides/client', 'TypeScript client'],
    ['guides/assistant', 'Use with an AI assistant'],
    ['guides/batches', 'Batches'],
    ['guides/broadcasts', 'Broadcasts'],
    ['guides/receiving', 'Receive mail'],
    ['guides/authentication', 'Received mail: SPF, DKIM, DMARC'],
    ['guides/webhooks', 'Webhooks'],
    ['guides/webhook-events', 'Webhook events'],
    ['guides/suppressions', 'Suppressions and bounces'],
    ['guides/domains', 'Domains and DNS'],
    ['guides/reports', 'Reports of receivers'],
    ['guides/unsubscribe', 'Unsubscribe'],
    ['guides/retention', 'Retention'],
    ['guides/erasure', 'Erase a person'],
    ['guides/errors', 'Errors and retries'],
    ['guides/limits', 'Limits'],
    ['guides/statistics', 'Statistics'],
    ['guides/requests', 'Find a request'],
    ['guides/dashboard', 'Dashboard'],
  ],
  'Moving in': [
    ['moving/overview', 'Moving in'],
    ['moving/postmark', 'From Postmark'],
    ['moving/resend', 'From Resend'],
    ['moving/mailgun', 'From Mailgun'],
    ['moving/ses', 'From Amazon SES'],
    ['moving/postal', 'From Postal'],
  ],
  Operate: [
    ['operate/install', 'Install'],
    ['operate/sizing', 'Size the machine'],
    ['operate/run', 'Run'],
    ['operate/proxy', 'Proxy and TLS'],
    ['operate/certificates', 'Certificates for SMTP'],
    ['operate/many-processes', 'Many processes'],
    ['operate/redis', 'Redis'],
    ['operate/cluster', 'Redis Cluster'],
    ['operate/content', 'Large content'],
    ['operate/backup', 'Backup and restore'],
    ['operate/upgrade', 'Upgrade'],
    ['operate/monitoring', 'Monitor'],
    ['operate/egress', 'Sources of outgoing mail'],
    ['operate/blocklists', 'Blocklists'],
    ['operate/troubleshooting', 'Troubleshoot'],
    ['operate/security', 'Security'],
  ],
  Reference: [
    ['reference/api', 'HTTP API as text'],
    ['reference/cli', 'Command line'],
    ['reference/settings', 'Settings'],
    ['reference/dns', 'DNS records'],
    ['reference/redis-keys', 'Keys in Redis'],
  ],
  Understand: [
    ['ARCHITECTURE', 'Architecture'],
    ['understand/promise', 'The promise'],
    ['understand/delivery', 'Delivery'],
    ['understand/known-limits', 'Known limits'],
  ],
  Contribute: [
    ['CONTRIBUTING', 'Contribute'],
    ['STYLE', 'Style'],
    ['SECURITY', 'Security policy'],
  ],
}

/** The groups as objects: title, and pages with their path and text. */
export const SIDEBAR = Object.entries(GROUPS).map(([title, pages]) => ({
  title,
  pages: pages.map(([path, text]) => ({ path, text })),
}))
