/** listen-fault - why a listener cannot listen, and its fix, for the operator who starts a service. */

interface Place {
  /** The setting of its port. */
  readonly setting: string
  readonly host: string
  readonly port: number
}

/** Takes the system's error, or null if only the failure is known. */
export function listenFault({ setting, host, port }: Place, error: NodeJS.ErrnoException | null): Error {
  const place = `${setting}: cannot listen on ${host}:${port}`
  const another = `set ${setting} to another port, or stop the program that uses it`
  if (error === null) return new Error(`${place}: in use, or not an address of this machine: ${another}`)
  return new Error(error.code === 'EADDRINUSE' ? `${place}: in use: ${another}` : `${place}: ${error.message}`)
}
