/**
 * mcp - `sendwright mcp`: a server of the Model Context Protocol over standard input and output
 *
 * The key comes from the environment or a file, never from an argument, which other users of the machine can read. The
 * SDK is loaded by this command alone.
 *
 * Spec mcp.tools, mcp.send, mcp.fence
 */
import { readFileSync } from 'node:fs'
import type { Command } from 'commander'
import { Sendwright, SendwrightError } from '../../client/sendwright.ts'
import { readClientSettings } from '../../process/config.ts'
import { CommandFailure } from '../console/failure.ts'
import { collect } from '../console/options.ts'
import type { Ended } from '../console/print.ts'
import { type SendPolicy, ToolSender } from './sending.ts'
import { accountTools, serverTools, type Tool } from './tools.ts'

const URL_DEFAULT = 'http://127.0.0.1:8080'

interface McpOptions {
  url?: string
  keyFile?: string
  allowSend?: boolean
  allowRecipient?: string[]
}

/** Adds the command. `ended` is called with its exit code. */
export function addMcpCommand(program: Command, ended: Ended): void {
  program
    .command('mcp')
    .description('serve tools for AI assistants over standard input and output (Model Context Protocol)')
    .option('--url <url>', 'address of the API')
    .option('--key-file <path>', 'file with a server key or an account key (default: SENDWRIGHT_TOKEN)')
    .option('--allow-send', 'allow sending on a live server, to the recipients of --allow-recipient')
    .option(
      '--allow-recipient <address>',
      'an address, or a domain as @example.com; may be given several times',
      collect,
    )
    .action(async (options: McpOptions) => {
      await serve(await makeTools(options))
      ended(0)
    })
}

/** The tools that a key can use. @throws CommandFailure if there is no key, or an option contradicts another */
async function makeTools({ url, keyFile, allowSend = false, allowRecipient = [] }: McpOptions): Promise<Tool[]> {
  if (allowSend && allowRecipient.length === 0)
    throw new CommandFailure('--allow-send needs --allow-recipient: name an address, or a domain as @example.com')
  const settings = readClientSettings()
  const key = keyFile === undefined ? settings.token : readKey(keyFile)
  if (key === null) throw new CommandFailure('No API key for the assistant: set SENDWRIGHT_TOKEN or give --key-file')
  const client = new Sendwright({ key, url: url ?? settings.url ?? URL_DEFAULT })
  if (key.startsWith('ak_')) return accountTools(client)
  if (!key.startsWith('sk_')) throw new CommandFailure('The assistant needs a server key (sk_) or an account key (ak_)')
  const policy: SendPolicy = { allowSend, recipients: allowRecipient.map((one) => one.toLowerCase()) }
  return serverTools(client, new ToolSender(client, policy, () => performance.now()), key.startsWith('sk_test_'))
}

function readKey(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch (error) {
    throw new CommandFailure(`Cannot read ${path}: ${(error as Error).message}`)
  }
}

/** Serves until standard input ends. */
async function serve(tools: readonly Tool[]): Promise<void> {
  const { Server } = await import('@modelcontextprotocol/sdk/server/index.js')
  const { StdioServerTransport } = await import('@modelcontextprotocol/sdk/server/stdio.js')
  const { CallToolRequestSchema, ListToolsRequestSchema } = await import('@modelcontextprotocol/sdk/types.js')
  const server = new Server({ name: 'sendwright', version: '1' }, { capabilities: { tools: {} } })
  server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: tools.map(({ name, description, input, isReadOnly }) => ({
      name,
      description,
      inputSchema: input,
      annotations: { readOnlyHint: isReadOnly, destructiveHint: false },
    })),
  }))
  const call = await makeCaller(tools)
  server.setRequestHandler(CallToolRequestSchema, async ({ params }) => call(params.name, params.arguments ?? {}))
  const closed = new Promise<void>((resolve) => {
    server.onclose = resolve
    process.stdin.once('end', resolve)
  })
  await server.connect(new StdioServerTransport())
  await closed
  await server.close()
}

/** The result of a tool. A failed call has a result too, from which the assistant reads the reason. */
interface ToolResult {
  readonly content: { type: 'text'; text: string }[]
  readonly isError?: boolean
  readonly [field: string]: unknown
}

async function makeCaller(tools: readonly Tool[]) {
  const { Ajv } = await import('ajv')
  const ajv = new Ajv({ allErrors: true })
  const known = new Map(tools.map((tool) => [tool.name, { tool, isFit: ajv.compile(tool.input) }]))
  return async (name: string, input: Record<string, unknown>): Promise<ToolResult> => {
    const found = known.get(name)
    if (found === undefined) return failed(`There is no tool ${name.slice(0, 100)}`)
    if (!found.isFit(input)) return failed(ajv.errorsText(found.isFit.errors, { dataVar: 'input' }))
    try {
      return { content: [{ type: 'text', text: await found.tool.run(input) }] }
    } catch (error) {
      if (error instanceof SendwrightError || error instanceof CommandFailure) return failed(error.message)
      throw error
    }
  }
}

function failed(sentence: string): ToolResult {
  return { isError: true, content: [{ type: 'text', text: sentence.slice(0, 2_000) }] }
}
