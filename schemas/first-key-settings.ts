/**
 * first-key-settings - the settings that name keys of the first account
 *
 * Spec key.first-run
 */

export const FIRST_KEY_SETTINGS = [
  {
    name: 'FIRST_RUN_TEST_KEY',
    kind: 'word',
    default: null,
    fallback: 'generated',
    meaning: 'Key of the test server that the first start creates, from `sendwright key generate --kind test`.',
  },
  {
    name: 'FIRST_RUN_TEST_KEY_FILE',
    kind: 'path',
    default: null,
    fallback: 'none',
    meaning: 'File with that key, mode 0600.',
  },
  {
    name: 'FIRST_RUN_LIVE_KEY',
    kind: 'word',
    default: null,
    fallback: 'generated',
    meaning:
      'Key of the live server that the first start creates, from `sendwright key generate --kind live`. Only while the API listens on the loopback; else use the file.',
  },
  {
    name: 'FIRST_RUN_LIVE_KEY_FILE',
    kind: 'path',
    default: null,
    fallback: 'none',
    meaning: 'File with that key, mode 0600.',
  },
  {
    name: 'FIRST_RUN_ACCOUNT_KEY',
    kind: 'word',
    default: null,
    fallback: 'generated',
    meaning:
      'Account key that the first start creates, from `sendwright key generate --kind account`. Only while the API listens on the loopback; else use the file.',
  },
  {
    name: 'FIRST_RUN_ACCOUNT_KEY_FILE',
    kind: 'path',
    default: null,
    fallback: 'none',
    meaning: 'File with that key, mode 0600.',
  },
  {
    name: 'FIRST_RUN_OPERATOR_KEY',
    kind: 'word',
    default: null,
    fallback: 'generated',
    meaning:
      'Operator key that the first start creates, from `sendwright key generate --kind operator`. Only while the API listens on the loopback; else use the file.',
  },
  {
    name: 'FIRST_RUN_OPERATOR_KEY_FILE',
    kind: 'path',
    default: null,
    fallback: 'none',
    meaning: 'File with that key, mode 0600.',
  },
] as const

/** How a value is parsed. `fallback` describes an absent default in words. */
export type SettingKind =
  | { kind: 'choice'; choices: readonly string[] }
  | { kind: 'integer'; min: number; max: number }
  /** A number of days, or `off`. */
  | { kind: 'days'; min: number; max: number }
  | {
      kind:
        | 'path'
        | 'bytes'
        | 'secret'
        | 'host'
        | 'domain'
        | 'blocklists'
        | 'cidrs'
        | 'ports'
        | 'url'
        | 'roles'
        | 'redis'
        | 'relay'
        | 'servers'
        | 'dkim'
        | 'content'
        | 'word'
        | 'password'
        | 'doors'
    }
