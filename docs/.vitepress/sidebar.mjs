/** sidebar - every page of the site, in reading order: the menu, the "next page" links and llms.txt follow it */

/** Group title -> pages as [path below docs/, menu text]. */
const GROUPS = {
  Start: [['start/smtp', 'Send over SMTP']],
  Guides: [
    ['guides/broadcasts', 'Broadcasts'],
    ['guides/receiving', 'Receive mail'],
    ['guides/authentication', 'Received mail: SPF, DKIM, DMARC'],
    ['guides/webhooks', 'Webhooks'],
    ['guides/unsubscribe', 'Unsubscribe'],
    ['guides/erasure', 'Erase a person'],
    ['guides/limits', 'Limits'],
    ['guides/statistics', 'Statistics'],
    ['guides/requests', 'Find a request'],
    ['guides/dashboard', 'Dashboard'],
  ],
  Operate: [
    ['operate/install', 'Install'],
    ['operate/sizing', 'Size the machine'],
    ['operate/run', 'Run'],
    ['operate/proxy', 'Proxy and TLS'],
    ['operate/many-processes', 'Many processes'],
    ['operate/cluster', 'Redis Cluster'],
    ['operate/content', 'Large content'],
    ['operate/backup', 'Backup and restore'],
    ['operate/upgrade', 'Upgrade'],
    ['operate/monitoring', 'Monitor'],
    ['operate/troubleshooting', 'Troubleshoot'],
  ],
  Reference: [
    ['reference/api', 'API as text'],
    ['reference/cli', 'Command line'],
    ['reference/settings', 'Settings'],
    ['reference/dns', 'DNS records'],
    ['reference/redis-keys', 'Keys in Redis'],
  ],
  Understand: [
    ['understand/delivery', 'Delivery'],
    ['understand/known-limits', 'Known limits'],
  ],
}

/** The groups as objects: title, and pages with their path and text. */
export const SIDEBAR = Object.entries(GROUPS).map(([title, pages]) => ({
  title,
  pages: pages.map(([path, text]) => ({ path, text })),
}))
