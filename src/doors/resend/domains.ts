/**
 * domains - /domains and below, with an account key
 */

import type { Domain } from '../../../schemas/domain.ts'
import type { Answer } from '../../http/respond.ts'
import type { DoorHandler } from '../common/door-table.ts'
import { readFields } from '../common/fields.ts'
import { answerWith, refuseFields } from '../common/own-api.ts'
import { pageFrom, readClientPage } from '../common/pages.ts'
import { parsePageAsked } from './lists.ts'

/** Fields of POST /domains that may be given, with the value that asks for nothing that is not offered. */
const HARMLESS: Readonly<Record<string, unknown>> = {
  open_tracking: false,
  click_tracking: false,
  tls: 'opportunistic',
}
const KNOWN = new Set([
  'name',
  ...Object.keys(HARMLESS),
  'region',
  'custom_return_path',
  'capabilities',
  'tracking_subdomain',
])
const CAPABILITIES = { sending: 'enabled', receiving: 'disabled' } as const

/** POST /domains */
export const resendAddDomain: DoorHandler = async (request, own) => {
  const { fields, issues } = readFields(request.body, KNOWN)
  if (issues.length > 0) return refuseFields(issues)
  const { name, ...others } = fields
  const asked = Object.keys(others).find((path) => HARMLESS[path] !== others[path])
  if (asked !== undefined) return refuseFields([{ path: asked, message: 'Not offered by this service: leave it out' }])
  const body = name === undefined ? {} : { domain: name }
  const answer = await own.call('addDomain', request, { body, rename: () => 'name' })
  return answerWith<Domain>(answer, (domain) => ({
    status: 201,
    json: { ...shown(domain), records: convertRecords(domain) },
  }))
}

/** GET /domains */
export const resendListDomains: DoorHandler = async (request, own) => {
  const page = await readClientPage<Domain>(
    async (after, limit) => {
      const query = { limit: String(limit), ...(after !== null && { after }) }
      return pageFrom(await own.call('listDomains', request, { query }), 'domains')
    },
    parsePageAsked(request),
    { idOf: ({ domainId }) => domainId },
  )
  if ('answer' in page) return page.answer
  return { status: 200, json: { object: 'list', has_more: page.hasMore, data: page.items.map(shown) } }
}

/** GET /domains/{id} */
export const resendReadDomain: DoorHandler = async (request, own) => {
  const answer = await own.call('readDomain', request, { params: request.params })
  return answerWith<Domain>(answer, (domain) => ({
    json: { object: 'domain', ...shown(domain), records: convertRecords(domain) },
  }))
}

/** POST /domains/{id}/verify */
export const resendVerifyDomain: DoorHandler = async (request, own) => {
  const answer = await own.call('verifyDomain', request, { params: request.params })
  return answerWith<Domain>(answer, ({ domainId }) => ({ json: { object: 'domain', id: domainId } }))
}

/** DELETE /domains/{id} */
export const resendRemoveDomain: DoorHandler = async (request, own): Promise<Answer> => {
  const answer = await own.call('deleteDomain', request, { params: request.params })
  return answerWith(answer, () => ({ json: { object: 'domain', id: request.params.id, deleted: true } }))
}

function shown(domain: Domain) {
  const { domainId, domain: name, createdAt } = domain
  const rest = { region: null, capabilities: CAPABILITIES, open_tracking: false, click_tracking: false }
  return { id: domainId, name, status: convertStatus(domain), created_at: createdAt, ...rest }
}

function convertStatus({ verified, lastCheckedAt, unverifiedSince }: Domain): string {
  if (verified) return 'verified'
  if (unverifiedSince !== undefined) return 'failed'
  return lastCheckedAt === null ? 'not_started' : 'pending'
}

function convertRecords({ returnPath, dkim, lastCheckedAt }: Domain): object[] {
  const waiting = lastCheckedAt === null ? 'not_started' : 'pending'
  const made = (record: string, { type, host, value, verified }: Domain['dkim'] | Domain['returnPath']) => {
    return { record, name: host, type, value, ttl: 'Auto', status: verified ? 'verified' : waiting }
  }
  return [made('SPF', returnPath), made('DKIM', dkim)]
}
