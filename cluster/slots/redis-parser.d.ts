/** redis-parser - the shape of the package of this name, which has no types of its own */
declare module 'redis-parser' {
  export default class Parser {
    constructor(options: {
      returnReply(reply: unknown): void
      returnError(error: Error): void
      returnFatalError(error: Error): void
      returnBuffers?: boolean
    })
    execute(data: Buffer): void
  }
}
