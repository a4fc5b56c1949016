"""A client on the Python SDK 2.x; see ../README.md."""

import asyncio
import json
import os
import sys
from contextlib import AsyncExitStack

from mcp import Client, StdioServerParameters, stdio_client, types
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client


class Changes:
    """The changes of resources that the server told of."""

    def __init__(self):
        self.uris = asyncio.Queue()

    async def __call__(self, message):
        if isinstance(message, Exception):
            raise message
        if isinstance(message, types.ResourceUpdatedNotification):
            await self.uris.put(str(message.params.uri))

    async def follow(self, subscription):
        async for event in subscription:
            await self.uris.put(str(event.uri))


class Told:
    """What the server told during a call, in the order in which it came."""

    def __init__(self):
        self.all = []

    async def message(self, params):
        self.all.append({"level": params.level, "logger": params.logger, "text": params.data["message"]})

    async def progress(self, progress, total, message):
        self.all.append({"progress": progress, "total": total, "text": message})


async def connect(stack, plan, changes, told):
    server = plan["server"]
    if "command" in server:
        parameters = StdioServerParameters(
            command=server["command"], args=server["arguments"], env=server["environment"]
        )
        quiet = stack.enter_context(open(os.devnull, "w"))
        transport = stdio_client(parameters, errlog=quiet)
    else:
        headers = {"Authorization": f"Bearer {server['token']}"}
        http = await stack.enter_async_context(create_mcp_http_client(headers=headers))
        transport = streamable_http_client(server["url"], http_client=http)
    mode = "legacy" if plan["era"] == "legacy" else "2026-07-28"
    client_info = types.Implementation(name="test-client", version="1")
    client = Client(
        transport, mode=mode, message_handler=changes, client_info=client_info,
        logging_callback=told.message, log_level="info",
    )
    return await stack.enter_async_context(client)


async def call(client, request):
    result = await client.call_tool(request["name"], request["arguments"])
    return {
        "isError": result.is_error,
        "text": "\n".join(block.text for block in result.content),
        "structured": result.structured_content,
    }


async def list_all(client):
    tools = await client.list_tools()
    resources = await client.list_resources()
    templates = await client.list_resource_templates()
    return {
        "tools": [tool.name for tool in tools.tools],
        "resources": [str(resource.uri) for resource in resources.resources],
        "templates": [template.uri_template for template in templates.resource_templates],
    }


async def watch(stack, client, plan, changes, uri):
    if plan["era"] == "legacy":
        await client.subscribe_resource(uri)
    else:
        listening = client.listen(resource_subscriptions=[uri])
        subscription = await stack.enter_async_context(listening)
        following = asyncio.create_task(changes.follow(subscription))
        stack.callback(following.cancel)
    return {"watching": uri}


async def hear(client, told, request):
    told.all = []
    await client.call_tool(request["name"], request["arguments"], progress_callback=told.progress)
    return {"told": told.all}


async def take(stack, client, plan, changes, told, step):
    if "list" in step:
        return await list_all(client)
    if "call" in step:
        return {"result": await call(client, step["call"])}
    if "together" in step:
        calls = [call(client, request) for request in step["together"]]
        return {"results": await asyncio.gather(*calls)}
    if "hear" in step:
        return await hear(client, told, step["hear"])
    if "changed" in step:
        return {"changed": await changes.uris.get()}
    if "read" in step:
        result = await client.read_resource(step["read"])
        return {"document": json.loads(result.contents[0].text)}
    return await watch(stack, client, plan, changes, step["watch"])


async def main():
    plan = json.load(sys.stdin)
    changes, told = Changes(), Told()
    async with AsyncExitStack() as stack:
        client = await connect(stack, plan, changes, told)
        for step in plan["steps"]:
            print(json.dumps(await take(stack, client, plan, changes, told, step)), flush=True)


asyncio.run(main())
