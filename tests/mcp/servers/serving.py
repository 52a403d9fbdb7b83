"""How the servers of the SDK are served: over stdio, over streamable HTTP, or over the older HTTP with events."""

import argparse
import asyncio
import socket
import sys
import time
import warnings
from typing import Any

from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.stdio import stdio_server

warnings.simplefilter("ignore")  # of the SDK, on what is deprecated in the newer protocol: both are served here


def options(description: str) -> argparse.ArgumentParser:
    """A parser with what every server takes."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--name", default="test", help="that the server gives itself")
    parser.add_argument("--http", type=int, metavar="PORT", help="serve on loopback; 0 takes a free port")
    parser.add_argument("--sse", action="store_true", help="with --http: the older protocol with events")
    parser.add_argument("--slow-start", type=float, default=0, metavar="SECONDS", help="before anything is read")
    parser.add_argument("--marker", default="", help="a word to find this process by")
    return parser


def serve(server: Server[Any], chosen: argparse.Namespace) -> None:
    """Serves until the input ends, or for ever over HTTP; the address is the first line of stdout then."""
    time.sleep(chosen.slow_start)
    if chosen.http is None:
        asyncio.run(_over_stdio(server))
        return
    # With its protocol named, asyncio sends small packets at once; without, an answer would wait 40 ms now and then.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind(("127.0.0.1", chosen.http))
    listening.listen(128)
    port = listening.getsockname()[1]
    print(f"http://127.0.0.1:{port}/{'sse' if chosen.sse else 'mcp'}", flush=True)
    _run(_sse_app(server) if chosen.sse else server.streamable_http_app(), listening)


def changes(server: Server[Any]) -> Any:
    """What the server says of itself: that its lists may change."""
    every = NotificationOptions(tools_changed=True, prompts_changed=True, resources_changed=True)
    return server.create_initialization_options(every)


async def _over_stdio(server: Server[Any]) -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, changes(server))


def _sse_app(server: Server[Any]) -> Any:
    from mcp.server.sse import SseServerTransport
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Mount, Route

    transport = SseServerTransport("/messages/")

    async def connect(request: Request) -> Response:
        async with transport.connect_sse(request.scope, request.receive, request._send) as (read, write):
            await server.run(read, write, changes(server))
        return Response()

    return Starlette(routes=[Route("/sse", connect), Mount("/messages/", transport.handle_post_message)])


def _run(app: Any, listening: socket.socket) -> None:
    import uvicorn

    config = uvicorn.Config(app, log_level="error", lifespan="on", timeout_graceful_shutdown=1)
    uvicorn.Server(config).run([listening])
    sys.exit(0)
