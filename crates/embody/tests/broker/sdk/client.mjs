// Drives an official TypeScript SDK client: connects, runs the steps that arrive on stdin, and prints one JSON line for
// the connection and for each step: what the client returned or threw.
//
// argv[2]: the folder with the packages. argv[3]: a JSON object with `generation` (1: `@modelcontextprotocol/sdk`,
// 2: `@modelcontextprotocol/client`), `era` (`legacy` or `auto`), `command` or `url`, `token` (HTTP) and `forms` (whether
// the client declares elicitation).
//
// A step is `{"list": true}`, `{"calls": [{"name", "arguments"}]}` (all at once; results in the same order) or
// `{"answer": {"action", "after_ms"}}` (how forms are answered from now on). End of input closes the connection.

import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

const load = createRequire(`${process.argv[2]}/`);
const plan = JSON.parse(process.argv[3]);

function sdk() {
  if (plan.generation === 2) {
    const { Client, StreamableHTTPClientTransport } = load('@modelcontextprotocol/client');
    const { StdioClientTransport } = load('@modelcontextprotocol/client/stdio');
    return { Client, StreamableHTTPClientTransport, StdioClientTransport, elicitation: 'elicitation/create' };
  }
  const { Client } = load('@modelcontextprotocol/sdk/client/index.js');
  const { StdioClientTransport } = load('@modelcontextprotocol/sdk/client/stdio.js');
  const { StreamableHTTPClientTransport } = load('@modelcontextprotocol/sdk/client/streamableHttp.js');
  const { ElicitRequestSchema } = load('@modelcontextprotocol/sdk/types.js');
  return { Client, StreamableHTTPClientTransport, StdioClientTransport, elicitation: ElicitRequestSchema };
}

const { Client, StreamableHTTPClientTransport, StdioClientTransport, elicitation } = sdk();
const options = { capabilities: plan.forms ? { elicitation: {} } : {} };
if (plan.generation === 2) options.versionNegotiation = { mode: plan.era };
const client = new Client({ name: 'sdk-typescript', version: '1' }, options);

let answer = { action: 'cancel', after_ms: 0 };
let forms = [];
if (plan.forms) {
  client.setRequestHandler(elicitation, async (request) => {
    forms.push(request.params.message);
    await sleep(answer.after_ms);
    return answer.action === 'accept' ? { action: 'accept', content: {} } : { action: answer.action };
  });
}

function transport() {
  if (plan.command) {
    const [command, ...args] = plan.command;
    return new StdioClientTransport({ command, args, stderr: 'inherit' });
  }
  const headers = { Authorization: `Bearer ${plan.token}` };
  return new StreamableHTTPClientTransport(new URL(plan.url), { requestInit: { headers } });
}

async function outcome(work) {
  try {
    return { returned: await work() };
  } catch (error) {
    return { threw: { name: error.name, code: error.code ?? null, message: error.message } };
  }
}

async function connect() {
  const used = transport();
  await client.connect(used);
  // Generation 1 tells the version to the transport only; over stdio there is no way to ask for it.
  const version = client.getNegotiatedProtocolVersion?.() ?? used.protocolVersion ?? null;
  return { version, instructions: client.getInstructions() };
}

async function run(step) {
  if (step.list) return (await client.listTools()).tools;
  if (step.calls) return Promise.all(step.calls.map((call) => outcome(() => client.callTool(call))));
  answer = step.answer;
  return null;
}

async function report(work) {
  forms = [];
  const started = Date.now();
  const done = await outcome(work);
  console.log(JSON.stringify({ ...done, forms, ms: Date.now() - started }));
}

await report(connect);
for await (const line of createInterface({ input: process.stdin })) {
  const step = JSON.parse(line);
  await report(() => run(step));
}
await client.close();
