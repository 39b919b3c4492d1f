/**
 * webhook - the events that clients hear of
 *
 * Spec event.catalogue
 */

import { MESSAGE_EVENTS } from './message.ts'

/** Events of a monthly cap. */
export const CAP_EVENTS = ['cap_warning', 'cap_reached'] as const

/** Spec event.catalogue: every event, in the catalogue's order. */
export const EVENTS = [...MESSAGE_EVENTS, ...CAP_EVENTS, 'inbound'] as const

export type MessageEventName = (typeof MESSAGE_EVENTS)[number]
export type CapEventName = (typeof CAP_EVENTS)[number]
export type EventName = (typeof EVENTS)[number]
