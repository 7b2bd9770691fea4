"""A server with one tool on whichever MCP SDK is installed. It appends everything that it is sent to the file `LOG`."""

import asyncio
import os
import threading


def record_stdin():
    """Puts a recorder before file descriptor 0, whichever way the SDK reads it."""
    reads, writes = os.pipe()
    stdin = os.dup(0)
    os.dup2(reads, 0)
    os.close(reads)

    def copy():
        with open(os.environ["LOG"], "ab", buffering=0) as log:
            while data := os.read(stdin, 65536):
                log.write(data)
                os.write(writes, data)
        os.close(writes)

    threading.Thread(target=copy, daemon=True).start()


def greet(name: str) -> str:
    return f"Hello, {name}!"


record_stdin()
try:
    from mcp.server import MCPServer
except ImportError:
    from mcp.server import Server
    from mcp.server.stdio import stdio_server
    from mcp.types import TextContent, Tool

    server = Server("old")

    @server.list_tools()
    async def list_tools():
        schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
        return [Tool(name="greet", description="Greets by name.", inputSchema=schema)]

    @server.call_tool()
    async def call_tool(name, arguments):
        return [TextContent(type="text", text=greet(**arguments))]

    async def main():
        async with stdio_server() as (reads, writes):
            await server.run(reads, writes, server.create_initialization_options())

    asyncio.run(main())
else:
    server = MCPServer("current")
    server.tool(description="Greets by name.")(greet)
    server.run("stdio")
