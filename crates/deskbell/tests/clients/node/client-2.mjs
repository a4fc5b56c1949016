// A client on the TypeScript SDK 2.x; see ../README.md.
import { readFileSync } from 'node:fs';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const plan = JSON.parse(readFileSync(0, 'utf8'));
const mode = plan.era === 'legacy' ? 'legacy' : { pin: '2026-07-28' };
const client = new Client({ name: 'test-client', version: '1' }, { versionNegotiation: { mode } });

const changes = [];
const waiting = [];
client.setNotificationHandler('notifications/resources/updated', (notification) => {
  const waiter = waiting.shift();
  if (waiter) waiter(notification.params.uri);
  else changes.push(notification.params.uri);
});
const changed = () =>
  changes.length ? changes.shift() : new Promise((resolve) => waiting.push(resolve));

let told = [];
const message = ({ params }) =>
  told.push({ level: params.level, logger: params.logger, text: params.data.message });
client.setNotificationHandler('notifications/message', message);
const onprogress = ({ progress, total, message }) => told.push({ progress, total, text: message });

function transport({ command, arguments: args, environment, url, token }) {
  if (command) return new StdioClientTransport({ command, args, env: environment, stderr: 'ignore' });
  const headers = { Authorization: `Bearer ${token}` };
  return new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } });
}

async function call(request) {
  const result = await client.callTool(request);
  return {
    isError: result.isError,
    text: result.content.map((block) => block.text).join('\n'),
    structured: result.structuredContent ?? null,
  };
}

async function hear(request) {
  told = [];
  const level = { 'io.modelcontextprotocol/logLevel': 'info' };
  const wanted = plan.era === 'legacy' ? request : { ...request, _meta: level };
  await client.callTool(wanted, { onprogress });
  return { told };
}

async function list() {
  const { tools } = await client.listTools();
  const { resources } = await client.listResources();
  const { resourceTemplates } = await client.listResourceTemplates();
  return {
    tools: tools.map((tool) => tool.name),
    resources: resources.map((resource) => resource.uri),
    templates: resourceTemplates.map((template) => template.uriTemplate),
  };
}

async function watch(uri) {
  if (plan.era === 'legacy') await client.subscribeResource({ uri });
  else await client.listen({ resourceSubscriptions: [uri] });
  return { watching: uri };
}

async function take(step) {
  if (step.list) return list();
  if (step.call) return { result: await call(step.call) };
  if (step.together) return { results: await Promise.all(step.together.map(call)) };
  if (step.hear) return hear(step.hear);
  if (step.changed) return { changed: await changed() };
  if (step.read) {
    const { contents } = await client.readResource({ uri: step.read });
    return { document: JSON.parse(contents[0].text) };
  }
  return watch(step.watch);
}

await client.connect(transport(plan.server));
for (const step of plan.steps) console.log(JSON.stringify(await take(step)));
await client.close();
