// `notify.send` written with the official TypeScript SDK 2.x, for the benchmark: accepted in memory, nothing is durable.
// Started as `server.mjs stdio` or `server.mjs http PORT`.

import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';

import { NodeStreamableHTTPServerTransport } from '@modelcontextprotocol/node';
import { McpServer } from '@modelcontextprotocol/server';
import { StdioServerTransport } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

const QUEUE_LIMIT = 100_000;
const queue = [];

function peer() {
    const server = new McpServer({ name: 'peer', version: '1.0.0' });
    server.registerTool(
        'notify_send',
        {
            description: 'Sends a message to every channel.',
            inputSchema: z.object({ title: z.string(), content: z.string() }),
            outputSchema: z.object({ success: z.boolean(), message: z.string() }),
        },
        async ({ title, content }) => {
            queue.push([title, content]);
            if (queue.length > QUEUE_LIMIT) queue.length = 0;
            const accepted = { success: true, message: '已向 1 个渠道发送通知' };
            return { content: [{ type: 'text', text: JSON.stringify(accepted) }], structuredContent: accepted };
        },
    );
    return server;
}

const sessions = new Map();

async function session() {
    const transport = new NodeStreamableHTTPServerTransport({
        sessionIdGenerator: () => randomUUID(),
        onsessioninitialized: id => sessions.set(id, transport),
    });
    await peer().connect(transport);
    return transport;
}

if (process.argv[2] === 'stdio') {
    await peer().connect(new StdioServerTransport());
} else {
    createServer(async (request, response) => {
        const transport = sessions.get(request.headers['mcp-session-id']) ?? (await session());
        await transport.handleRequest(request, response);
    }).listen(Number(process.argv[3]), '127.0.0.1');
}
