"""`notify.send` written with the official Python SDK, for the benchmark: accepted in memory, nothing is durable.

One file for mcp 1.x and 2.x; started as `server.py stdio` or `server.py http PORT`.
"""

import sys
from collections import deque
from typing import TypedDict

try:
    from mcp.server import MCPServer as Server
except ImportError:
    from mcp.server.fastmcp import FastMCP as Server

QUEUE_LIMIT = 100_000


class Accepted(TypedDict):
    success: bool
    message: str


transport = sys.argv[1]
is_v1 = Server.__name__ == "FastMCP"
port = int(sys.argv[2]) if transport == "http" else 0
settings = {"host": "127.0.0.1", "port": port} if is_v1 and transport == "http" else {}
server = Server("peer", log_level="WARNING", **settings)
queue: deque[tuple[str, str]] = deque(maxlen=QUEUE_LIMIT)


@server.tool(name="notify_send")
def notify_send(title: str, content: str) -> Accepted:
    """Sends a message to every channel."""
    queue.append((title, content))
    return {"success": True, "message": "已向 1 个渠道发送通知"}


if transport == "stdio":
    server.run("stdio")
elif is_v1:
    server.run("streamable-http")
else:
    server.run("streamable-http", host="127.0.0.1", port=port)
