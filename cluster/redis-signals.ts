/**
 * redis-signals - hears the signals about topics that owners of shards send after their commits.
 *
 * One connection for all topics, opened with the first and closed with the last. What is said while it is down is not heard.
 */
import { topicName } from './keyspace.ts'
import { RedisSubscriber } from './redis/hear.ts'

export type Heard = (text: string) => void

export class RedisSignals {
  private readonly address: string
  private readonly listeners = new Map<string, Set<Heard>>()
  private subscriber: RedisSubscriber | null = null

  constructor(address: string) {
    this.address = address
  }

  /** Hears what is said about a topic. Resolves when it is heard from now on, with what ends it. */
  async hear(topic: string, heard: Heard): Promise<() => void> {
    const channel = topicName(topic)
    const known = this.listeners.get(channel)
    if (known !== undefined) known.add(heard)
    else {
      this.listeners.set(channel, new Set([heard]))
      this.subscriber ??= this.connect()
      await this.subscriber.add(channel)
    }
    return () => this.leave(channel, heard)
  }

  close(): void {
    this.subscriber?.close()
    this.subscriber = null
    this.listeners.clear()
  }

  private leave(channel: string, heard: Heard): void {
    const known = this.listeners.get(channel)
    if (known === undefined || !known.delete(heard) || known.size > 0) return
    this.listeners.delete(channel)
    if (this.listeners.size === 0) this.close()
    else this.subscriber?.remove(channel)
  }

  private connect(): RedisSubscriber {
    return new RedisSubscriber({
      address: this.address,
      name: 'signals',
      heard: (channel, message) => {
        const text = message.toString()
        for (const heard of this.listeners.get(channel) ?? []) heard(text)
      },
    })
  }
}
