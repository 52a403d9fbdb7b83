"""`toolsearch serve`: all servers of an mcp.json behind one."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from toolsearch import SetupError
from toolsearch.support.redaction import redacted

__all__ = ["serve"]

HOST, PORT = "127.0.0.1", 8484
TOKEN = "TOOLSEARCH_GATEWAY_TOKEN"  # noqa: S105  # the name of a variable


def serve(  # noqa: PLR0917  # typer takes each as an option
    configs: Annotated[list[Path], typer.Argument(metavar="MCP.JSON…", help="The configurations; one may be enough.")],
    mode: Annotated[
        str | None,
        typer.Option(
            help="bridge (search and call), live (found tools are listed), all, or auto, which chooses: the default."
        ),
    ] = None,
    confirm: Annotated[
        str | None,
        typer.Option(help="Whether actions are asked about: always (the default), auto (where the client can), never."),
    ] = None,
    index: Annotated[str | None, typer.Option(help="The index of the search; auto by default.")] = None,
    root: Annotated[Path | None, typer.Option(help="What ${ROOT} stands for; the working folder.")] = None,
    result_tokens: Annotated[
        int | None, typer.Option(help="A longer result is handed out in pages; 10000 by default.")
    ] = None,
    pins: Annotated[Path | None, typer.Option(help="The file of the pins; see `toolsearch pin`.")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Hold back tools that nobody has approved.")] = False,
    cache: Annotated[bool, typer.Option(help="Keep the definitions for the next start.")] = True,
    log: Annotated[Path | None, typer.Option(help="A file that gets a line for each search and call.")] = None,
    http: Annotated[bool, typer.Option("--http", help="Serve over HTTP in place of stdin and stdout.")] = False,
    host: Annotated[str | None, typer.Option(help=f"With --http: the address; {HOST} by default.")] = None,
    port: Annotated[
        int | None, typer.Option(help=f"With --http: the port; {PORT} by default, and 0 takes a free one.")
    ] = None,
    token_file: Annotated[
        Path | None, typer.Option(help=f"With --http: a file with the bearer token; or set {TOKEN}.")
    ] = None,
    origin: Annotated[list[str] | None, typer.Option(help="With --http: an origin of pages that may call.")] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Say more on stderr.")] = False,
) -> None:
    """Serve all servers of an mcp.json as one, with a search over their tools."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO if verbose else logging.WARNING, format="%(message)s")
    settings: dict[str, object] = {
        "mode": mode, "confirm": confirm, "index": index, "result_tokens": result_tokens, "pins": pins,
        "pin": "strict" if strict else None, "cache": cache if not cache else None, "log": log,
    }  # fmt: skip
    try:
        if not http:
            _refuse_without_http({"--host": host, "--port": port, "--token-file": token_file, "--origin": origin})
        address = (HOST if host is None else host, PORT if port is None else port)
        where = (*address, _token(token_file), tuple(origin or ())) if http else None
        code = asyncio.run(_serve([*configs], root, settings, where))
    except SetupError as error:
        typer.echo(redacted(str(error)), err=True)
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    if code:
        raise typer.Exit(code)


async def _serve(
    configs: list[Path],
    root: Path | None,
    settings: dict[str, object],
    where: tuple[str, int, str, tuple[str, ...]] | None,
) -> int:
    """Serves until the client leaves or a signal comes; returns the exit code."""
    from opentelemetry import trace

    from toolsearch.mcp.gateway import Gateway
    from toolsearch.mcp.gateway.spans import exporting

    if (provider := exporting(os.environ)) is not None:
        trace.set_tracer_provider(provider)
    gateway = Gateway(*configs, root=root, **settings)  # type: ignore[arg-type]
    code = _code_of_signals()
    if where is None:
        async with gateway:
            serving = asyncio.ensure_future(gateway.serve_stdio())
            first: set[asyncio.Future[Any]] = {serving, code}
            await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
        if code.done():
            os._exit(code.result())  # a thread of the SDK waits for the next line of stdin, and nothing else ends it
        serving.result()
        return 0
    from toolsearch.mcp.gateway.http import http_app, listen, serve_http

    host, port, token, origins = where
    app = http_app(gateway, host=host, token=token, origins=origins)
    with listen(host, port) as listening:
        async with gateway:
            address = cast("tuple[str, int]", listening.getsockname()[:2])
            shown = f"[{address[0]}]" if ":" in address[0] else address[0]
            typer.echo(f"Serving http://{shown}:{address[1]}/mcp", err=True)
            await serve_http(app, listening)  # it hears signals, too, and ends
    return code.result() if code.done() else 0


def _code_of_signals() -> asyncio.Future[int]:
    """The exit code, once Ctrl-C or SIGTERM has come: it ends nothing by itself, so that the servers end in peace."""
    loop = asyncio.get_running_loop()
    code: asyncio.Future[int] = loop.create_future()

    def end(number: int) -> None:
        if not code.done():
            code.set_result(128 + number)

    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError, RuntimeError, ValueError):  # on Windows, and in another thread
            loop.add_signal_handler(number, end, number)
    return code


def _refuse_without_http(given: Mapping[str, object]) -> None:
    """Raises `SetupError` for an option that would do nothing."""
    for option, value in given.items():
        if value is not None and value != []:
            raise SetupError(f"{option} needs --http")


def _token(file: Path | None) -> str:
    """The bearer token. Raises `SetupError` for a file without one: nobody is to serve openly by mistake."""
    if file is None:
        return os.environ.get(TOKEN, "").strip()
    try:
        token = file.expanduser().read_text("utf-8").strip()
    except (OSError, ValueError) as error:
        raise SetupError(f"the token in {str(file)!r} cannot be read: {error}") from None
    if not token:
        raise SetupError(f"the file {str(file)!r} holds no token")
    return token
