/** redis-parser - the types of the package with this name, which has none of its own */
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
