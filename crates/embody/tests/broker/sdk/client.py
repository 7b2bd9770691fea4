"""Drives the official Python SDK client: connects, runs the steps that arrive on stdin, and prints one JSON line for the
connection and for each step: what the client returned or raised. Plan and steps are those of `client.mjs`."""

import asyncio
import json
import sys
import time

import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client

LIMIT_SECONDS = 60


def target(plan):
    if "command" in plan:
        program, *arguments = plan["command"]
        return StdioServerParameters(command=program, args=arguments)
    headers = {"Authorization": f"Bearer {plan['token']}"}
    return streamable_http_client(plan["url"], http_client=create_mcp_http_client(headers=headers))


def plain(model):
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


async def outcome(work):
    try:
        return {"returned": await work}
    except Exception as error:
        code = getattr(getattr(error, "error", None), "code", None)
        return {"threw": {"name": type(error).__name__, "code": code, "message": str(error)}}


class Driver:
    def __init__(self):
        self.answer = {"action": "cancel", "after_ms": 0}
        self.forms = []

    async def elicit(self, _context, params):
        self.forms.append(params.message)
        await asyncio.sleep(self.answer["after_ms"] / 1000)
        action = self.answer["action"]
        return types.ElicitResult(action=action, content={} if action == "accept" else None)

    async def report(self, work):
        self.forms = []
        started = time.monotonic()
        done = await outcome(work)
        elapsed = int((time.monotonic() - started) * 1000)
        print(json.dumps(done | {"forms": self.forms, "ms": elapsed}), flush=True)

    async def run(self, client, step):
        if "list" in step:
            return [plain(tool) for tool in (await client.list_tools()).tools]
        if "calls" in step:
            return await asyncio.gather(*(outcome(self.call(client, call)) for call in step["calls"]))
        self.answer = step["answer"]

    async def call(self, client, call):
        return plain(await client.call_tool(call["name"], call["arguments"]))


async def main():
    plan = json.loads(sys.argv[1])
    driver = Driver()
    client = Client(
        target(plan),
        mode=plan["era"],
        elicitation_callback=driver.elicit if plan["forms"] else None,
        read_timeout_seconds=LIMIT_SECONDS,
    )
    async with client:

        async def connected():
            return {"version": client.protocol_version, "instructions": client.instructions}

        await driver.report(connected())
        while line := await asyncio.to_thread(sys.stdin.readline):
            await driver.report(driver.run(client, json.loads(line)))


asyncio.run(main())
