"""`toolsearch login`: a person logs in to a server, in a browser; the login is kept, and renewed by itself."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
import time
import webbrowser
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from toolsearch import MissingExtra, SetupError
from toolsearch.mcp.config import ServerEntry, read_config
from toolsearch.support.private_files import config_folder

if TYPE_CHECKING:
    from toolsearch.mcp.oauth.login import ClientOptions
    from toolsearch.mcp.oauth.redirect import Redirect
    from toolsearch.mcp.oauth.store import Shown

__all__ = ["login"]


def login(
    server: Annotated[str | None, typer.Argument(help="The server's name in the configuration.")] = None,
    *,
    config: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="The configuration with the server.",
            show_default="mcp.json here, or else in your settings",
        ),
    ] = None,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in a browser, or only print its address.")
    ] = True,
    scope: Annotated[
        list[str] | None,
        typer.Option(help="A right to ask for. Repeat it for several.", show_default="those that the server names"),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(min=1, max=65_535, help="The port on this machine to come back to.", show_default="a free one"),
    ] = None,
    seconds: Annotated[float, typer.Option(min=1, help="How long to wait for the person.")] = 300,
    logout: Annotated[bool, typer.Option("--logout", help="Forget the login instead.")] = False,
    show_all: Annotated[bool, typer.Option("--list", help="List the logins that are kept.")] = False,
) -> None:
    """Log in to a server that asks for it, in your browser. The login is kept for you alone, and renews itself.

    The exit code is 2 if the login fails.
    """
    try:
        from toolsearch.mcp.oauth.login import log_in, log_out
        from toolsearch.mcp.oauth.store import LoginStore
    except ModuleNotFoundError as error:
        raise MissingExtra("toolsearch login", error.name or "mcp", "mcp") from None
    store = LoginStore()
    if show_all:
        for each in store:
            _say(_line(each))
        return
    if server is None:
        raise SetupError("name the server to log in to: toolsearch login SERVER, or see --list")
    entry = _entry(server, config)
    if logout:
        there = log_out(server, entry.url, store)
        _say(f"Logged out of {server!r}." if there else f"Nobody was logged in to {server!r}.")
        return
    options = _options(entry, tuple(scope or ()), port)
    with _quiet():
        shown = asyncio.run(
            log_in(server, entry.url, _shows(open_page=browser), options=options, store=store, seconds=seconds)
        )
    _say(f"Logged in. {_line(shown)}")


def _entry(server: str, config: str | None) -> ServerEntry:
    here = Path("mcp.json")
    file = Path(config) if config else here if here.exists() else config_folder() / "mcp.json"
    found = read_config(file)
    entry = found.servers.get(server)
    if entry is None:
        raise SetupError(
            f"the file {str(file)!r} has no server {server!r}; it has: {', '.join(map(repr, found.servers))}. "
            "Name another file with --config"
        )
    if entry.problem:
        raise SetupError(f"the server {server!r}: {entry.problem}")
    if not entry.url:
        raise SetupError(
            f"the server {server!r} is a program on this machine, which has no login of this kind: what it needs "
            "stands in the 'env' of its entry"
        )
    if any(name.lower() == "authorization" for name in entry.headers):
        raise SetupError(
            f"the entry of {server!r} has an 'Authorization' header, used instead of a login: take it out first"
        )
    return entry


def _options(entry: ServerEntry, scopes: tuple[str, ...], port: int | None) -> ClientOptions:
    """What the entry says about the login, and what the command line says instead."""
    from toolsearch.mcp.oauth.login import ClientOptions

    oauth = entry.raw.get("oauth")
    oauth = oauth if isinstance(oauth, Mapping) else {}
    texts = {key: oauth[key] for key in ("clientId", "clientSecret") if oauth.get(key)}
    read = read_config({"oauth": {"command": "-", "env": texts}}).servers["oauth"]  # with its variables replaced
    if read.problem:
        raise SetupError(f"the 'oauth' in the entry of {entry.name!r}: {read.problem}")
    written = oauth.get("scopes", oauth.get("scope", ()))
    wanted = written.split() if isinstance(written, str) else map(str, written if isinstance(written, list) else ())
    known_port = oauth.get("callbackPort")
    return ClientOptions(
        read.env.get("clientId"),
        read.env.get("clientSecret"),
        scopes or tuple(wanted),
        port or (known_port if isinstance(known_port, int) else None),
    )


def _shows(*, open_page: bool) -> Callable[[str, Redirect], None]:
    """Shows a person the page to log in at. Only this command ever opens a browser, and only if it may."""

    def show(address: str, redirect: Redirect) -> None:
        _say("Log in at this address:")
        _say("")
        _say(address)
        _say("")
        if open_page:
            threading.Thread(target=webbrowser.open, args=[address], daemon=True).start()  # some wait for their end
        elif _listen_to_input(redirect):
            _say("If the browser is on another machine, paste the address that it ends at here, and press Enter.")

    return show


def _listen_to_input(redirect: Redirect) -> bool:
    """Takes the address where the browser ended from the terminal; whether that works here."""
    loop = asyncio.get_running_loop()

    def read() -> None:
        line = os.read(sys.stdin.fileno(), 65_536).decode(errors="replace")
        if not line:
            loop.remove_reader(sys.stdin.fileno())
        elif line.strip() and (problem := redirect.take(line)) is not None:
            _say(problem)

    try:
        loop.add_reader(sys.stdin.fileno(), read)
    except (OSError, ValueError, NotImplementedError):
        return False
    return True


@contextmanager
def _quiet() -> Generator[None]:
    """Keeps the SDK's log off the terminal: what goes wrong is raised, and is told in our words."""
    log = logging.getLogger("mcp")
    nothing = logging.NullHandler()
    log.addHandler(nothing)
    try:
        yield
    finally:
        log.removeHandler(nothing)


def _line(login: Shown) -> str:
    if login.refused:
        state = f"over ({login.refused}): log in again"
    elif login.renewable:
        state = "renews itself"
    elif login.expires_at is None:
        state = "until the server ends it"
    else:
        end = datetime.fromtimestamp(login.expires_at, UTC)
        state = f"{'until' if login.expires_at > time.time() else 'ended'} {end:%Y-%m-%d %H:%M} UTC"
    return f"{login.server}  {login.url}  {state}, kept in {'the keyring' if login.kept_in == 'keyring' else 'a file'}"


def _say(line: str) -> None:
    Console().print(Text(line), soft_wrap=True)
