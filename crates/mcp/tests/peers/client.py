"""Follows a plan with the official Python client and prints what it saw as one JSON object.

The plan is the only argument, a JSON object: `place` (`{"command": [...]}`, `{"http": URL}` or `{"sse": URL}`), `mode`
(`legacy`, `auto` or a revision of the stateless era), `headers`, `environment`, `calls` (each with `name` and
`arguments`), `listen` (a tool whose call announces that the list of tools has changed).
Whatever the server asks is answered: forms with their defaults or the word `peer`, the model with `from a model`.
"""

import asyncio
import json
import sys

import mcp_types as types
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client

LIMIT_SECONDS = 100
BLANKS = {"string": "peer", "integer": 1, "number": 1.5, "boolean": True, "array": []}


def target(plan):
    place = plan["place"]
    headers = plan.get("headers", {})
    if "command" in place:
        program, *arguments = place["command"]
        return StdioServerParameters(command=program, args=arguments, env=plan.get("environment", {}))
    if "sse" in place:
        return sse_client(place["sse"], headers=headers)
    return streamable_http_client(place["http"], http_client=create_mcp_http_client(headers=headers))


async def elicit(_context, params):
    properties = params.requested_schema.get("properties", {})
    content = {name: form.get("default", BLANKS[form["type"]]) for name, form in properties.items()}
    return types.ElicitResult(action="accept", content=content)


async def sample(_context, _params):
    content = types.TextContent(type="text", text="from a model")
    return types.CreateMessageResult(role="assistant", content=content, model="peer")


async def roots(_context):
    return types.ListRootsResult(roots=[types.Root(uri="file:///peer")])


def plain(model):
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


async def follow(plan):
    seen = {"progress": [], "logs": [], "results": []}
    told = asyncio.Event()

    async def log(params):
        seen["logs"].append(params.data)

    async def notice(message):
        if getattr(message, "method", None) == "notifications/tools/list_changed":
            told.set()

    async def progress(done, total, message):
        seen["progress"].append([done, total, message])

    client = Client(
        target(plan),
        mode=plan["mode"],
        elicitation_callback=elicit,
        sampling_callback=sample,
        list_roots_callback=roots,
        logging_callback=log,
        log_level="info",
        message_handler=notice,
        read_timeout_seconds=LIMIT_SECONDS,
    )
    async with client:
        seen["version"] = client.protocol_version
        seen["tools"] = [tool.name for tool in (await client.list_tools()).tools]
        seen["resources"] = [str(one.uri) for one in (await client.list_resources()).resources]
        for call in plan.get("calls", []):
            try:
                result = plain(await client.call_tool(call["name"], call["arguments"], progress_callback=progress))
            except MCPError as error:
                result = {"error": plain(error.error)}
            seen["results"].append(result)
        if "listen" in plan and plan["mode"] == "legacy":
            await client.call_tool(plan["listen"], {})
            await told.wait()
            seen["heard"] = "ToolsListChanged"
        elif "listen" in plan:
            async with client.listen(tools_list_changed=True) as subscription:
                await client.call_tool(plan["listen"], {})
                seen["heard"] = type(await anext(aiter(subscription))).__name__
    return seen


async def main():
    print(json.dumps(await asyncio.wait_for(follow(json.loads(sys.argv[1])), LIMIT_SECONDS)))


asyncio.run(main())
