// A client on the TypeScript SDK 1.x; see ../README.md.
import { readFileSync } from 'node:fs';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  LoggingMessageNotificationSchema,
  ResourceUpdatedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';

const plan = JSON.parse(readFileSync(0, 'utf8'));
const client = new Client({ name: 'test-client', version: '1' });

const changes = [];
const waiting = [];
client.setNotificationHandler(ResourceUpdatedNotificationSchema, (notification) => {
  const waiter = waiting.shift();
  if (waiter) waiter(notification.params.uri);
  else changes.push(notification.params.uri);
});
const changed = () =>
  changes.length ? changes.shift() : new Promise((resolve) => waiting.push(resolve));

let told = [];
const message = ({ params }) =>
  told.push({ level: params.level, logger: params.logger, text: params.data.message });
client.setNotificationHandler(LoggingMessageNotificationSchema, message);
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
  await client.callTool(request, undefined, { onprogress });
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
  await client.subscribeResource({ uri: step.watch });
  return { watching: step.watch };
}

await client.connect(transport(plan.server));
for (const step of plan.steps) console.log(JSON.stringify(await take(step)));
await client.close();
