/**
 * device - the cookie of a browser in which a user has signed in before, as OWASP describes device cookies
 *
 * A try with a valid cookie counts for its device, so that strangers who try the user's address do not lock the user
 * out. The cookie names user and device under a MAC; the user's row lists the devices that are valid.
 *
 * Spec session.limits
 */

import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'

const ID_BYTES = 16
const COOKIE = /^([0-9a-f-]{36})\.([\w-]{22})\.([\w-]{43})$/

/** A device that a cookie names. */
export interface Device {
  readonly userId: string
  readonly deviceId: string
}

/** A device id that no browser has yet. */
export function newDeviceId(): string {
  return randomBytes(ID_BYTES).toString('base64url')
}

/** Makes the cookie's value. */
export function formatDevice(key: Buffer, { userId, deviceId }: Device): string {
  return `${userId}.${deviceId}.${computeMac(key, userId, deviceId).toString('base64url')}`
}

/** Reads the cookie's value; null if this installation did not make it. Whether its device is valid is in the store. */
export function parseDevice(key: Buffer, value: string | null): Device | null {
  const [, userId = '', deviceId = '', mac = ''] = COOKIE.exec(value ?? '') ?? []
  if (mac === '' || !timingSafeEqual(Buffer.from(mac, 'base64url'), computeMac(key, userId, deviceId))) return null
  return { userId, deviceId }
}

function computeMac(key: Buffer, userId: string, deviceId: string): Buffer {
  return createHmac('sha256', key).update(`${userId}.${deviceId}`).digest()
}
