"""A client on the Python SDK 1.x; see ../README.md."""

import asyncio
import json
import os
import sys
from contextlib import AsyncExitStack

from mcp import ClientSession, StdioServerParameters, stdio_client, types
from mcp.client.streamable_http import streamablehttp_client
from pydantic import AnyUrl


class Changes:
    """The changes of resources that the server told of."""

    def __init__(self):
        self.uris = asyncio.Queue()

    async def __call__(self, message):
        if isinstance(message, Exception):
            raise message
        notification = getattr(message, "root", None)
        if isinstance(notification, types.ResourceUpdatedNotification):
            await self.uris.put(str(notification.params.uri))


class Told:
    """What the server told during a call, in the order in which it came."""

    def __init__(self):
        self.all = []

    async def message(self, params):
        self.all.append({"level": params.level, "logger": params.logger, "text": params.data["message"]})

    async def progress(self, progress, total, message):
        self.all.append({"progress": progress, "total": total, "text": message})


async def connect(stack, server, changes, told):
    if "command" in server:
        parameters = StdioServerParameters(
            command=server["command"], args=server["arguments"], env=server["environment"]
        )
        quiet = stack.enter_context(open(os.devnull, "w"))
        streams = await stack.enter_async_context(stdio_client(parameters, errlog=quiet))
    else:
        headers = {"Authorization": f"Bearer {server['token']}"}
        http = streamablehttp_client(server["url"], headers=headers)
        streams = (await stack.enter_async_context(http))[:2]
    client_info = types.Implementation(name="test-client", version="1")
    session = ClientSession(*streams, message_handler=changes,
                            logging_callback=told.message, client_info=client_info)
    await stack.enter_async_context(session)
    await session.initialize()
    return session


async def call(session, request):
    result = await session.call_tool(request["name"], request["arguments"])
    return {
        "isError": result.isError,
        "text": "\n".join(block.text for block in result.content),
        "structured": result.structuredContent,
    }


async def list_all(session):
    tools = await session.list_tools()
    resources = await session.list_resources()
    templates = await session.list_resource_templates()
    return {
        "tools": [tool.name for tool in tools.tools],
        "resources": [str(resource.uri) for resource in resources.resources],
        "templates": [template.uriTemplate for template in templates.resourceTemplates],
    }


async def hear(session, told, request):
    told.all = []
    await session.call_tool(request["name"], request["arguments"], progress_callback=told.progress)
    return {"told": told.all}


async def take(session, changes, told, step):
    if "list" in step:
        return await list_all(session)
    if "call" in step:
        return {"result": await call(session, step["call"])}
    if "together" in step:
        calls = [call(session, request) for request in step["together"]]
        return {"results": await asyncio.gather(*calls)}
    if "hear" in step:
        return await hear(session, told, step["hear"])
    if "changed" in step:
        return {"changed": await changes.uris.get()}
    if "read" in step:
        result = await session.read_resource(AnyUrl(step["read"]))
        return {"document": json.loads(result.contents[0].text)}
    await session.subscribe_resource(AnyUrl(step["watch"]))
    return {"watching": step["watch"]}


async def main():
    plan = json.load(sys.stdin)
    changes, told = Changes(), Told()
    async with AsyncExitStack() as stack:
        session = await connect(stack, plan["server"], changes, told)
        for step in plan["steps"]:
            print(json.dumps(await take(session, changes, told, step)), flush=True)


asyncio.run(main())
