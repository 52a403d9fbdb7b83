"""An authorization server and a server of MCP that asks for its tokens, both on loopback, at two addresses.

The server of MCP is the SDK's, behind the SDK's own check of bearer tokens. The authorization server is ours: its
paths are not the default ones, it sends the browser back at once, rotates refresh tokens, takes a used one for stolen
and ends the login, and fails on request.
"""

import asyncio
import base64
import hashlib
import secrets
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import mcp_types
import uvicorn
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.routes import create_protected_resource_routes
from mcp.server.auth.settings import AuthSettings
from mcp.server.lowlevel import Server
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

SCOPE = "notes:read"


@dataclass
class Grant:
    client: str
    challenge: str = ""
    redirect: str = ""
    scope: str = SCOPE
    resource: str = ""
    family: str = ""
    used: bool = False


@dataclass
class AuthorizationServer:
    """`lifetime` of access tokens in seconds; `fails` is the status that the token endpoint answers with."""

    issuer: str = ""
    lifetime: int | None = 3600
    rotates: bool = True
    registers: bool = True
    wants_localhost: bool = False
    refuses: str = ""
    other_issuer: str = ""  # what it says in its answer of who it is
    fails: int | None = None
    method: str = "none"  # how clients prove themselves
    answers_as: bytes | None = None
    scopes: list[str] = field(default_factory=lambda: [SCOPE])
    counts: Counter[str] = field(default_factory=Counter)
    clients: dict[str, dict[str, Any]] = field(default_factory=dict)
    codes: dict[str, Grant] = field(default_factory=dict)
    refresh: dict[str, Grant] = field(default_factory=dict)
    access: dict[str, tuple[Grant, float]] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)
    proofs: list[str] = field(default_factory=list)

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/.well-known/oauth-authorization-server", self.metadata),
                Route("/oauth/register-client", self.register, methods=["POST"]),
                Route("/oauth/start", self.authorize),
                Route("/oauth/tokens", self.token, methods=["POST"]),
                Route("/oauth/forget", self.forget, methods=["POST"]),
            ]
        )

    async def metadata(self, request: Request) -> Response:
        found = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/oauth/start",
            "token_endpoint": f"{self.issuer}/oauth/tokens",
            "revocation_endpoint": f"{self.issuer}/oauth/forget",
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": [self.method],
            "authorization_response_iss_parameter_supported": True,
        }
        if self.registers:
            found["registration_endpoint"] = f"{self.issuer}/oauth/register-client"
        return JSONResponse(found)

    async def register(self, request: Request) -> Response:
        self.counts["register"] += 1
        asked = await request.json()
        if self.wants_localhost and not asked["redirect_uris"][0].startswith("http://localhost:"):
            return JSONResponse({"error": "invalid_redirect_uri"}, status_code=400)
        if asked["token_endpoint_auth_method"] != self.method:
            return JSONResponse({"error": "invalid_client_metadata"}, status_code=400)
        client = {**asked, "client_id": secrets.token_hex(8)}
        if self.method != "none":
            client["client_secret"] = secrets.token_hex(8)
        self.clients[client["client_id"]] = client
        return JSONResponse(client, status_code=201)

    async def authorize(self, request: Request) -> Response:
        asked = request.query_params
        self.counts["authorize"] += 1
        client = self.clients.get(asked["client_id"])
        if client is None or asked["redirect_uri"] not in client["redirect_uris"]:
            return JSONResponse({"error": "invalid_client"}, status_code=400)
        back: dict[str, str] = {"state": asked["state"], "iss": self.other_issuer or self.issuer}
        if self.refuses:
            back |= {"error": self.refuses, "error_description": "the person said no"}
        else:
            assert asked["code_challenge_method"] == "S256"
            code = secrets.token_urlsafe(32)
            grant = Grant(asked["client_id"], asked["code_challenge"], asked["redirect_uri"])
            grant.scope, grant.resource = asked.get("scope", ""), asked.get("resource", "")
            self.codes[code] = grant
            back["code"] = code
        return RedirectResponse(f"{asked['redirect_uri']}?{urlencode(back)}", status_code=302)

    async def token(self, request: Request) -> Response:
        form = dict((await request.form()).items())
        kind = str(form["grant_type"])
        self.counts[kind] += 1
        if self.answers_as is not None:
            return Response(self.answers_as, media_type="text/html")
        if self.fails is not None:
            return JSONResponse({"error": "temporarily_unavailable"}, status_code=self.fails)
        if not self.is_proven(request, form):
            return JSONResponse({"error": "invalid_client"}, status_code=401)
        if kind == "authorization_code":
            grant = self.codes.pop(str(form["code"]), None)
            digest = hashlib.sha256(str(form.get("code_verifier", "")).encode()).digest()
            proof = base64.urlsafe_b64encode(digest).decode().rstrip("=")
            self.proofs.append(proof)
            if grant is None or proof != grant.challenge or form["redirect_uri"] != grant.redirect:
                return JSONResponse({"error": "invalid_grant"}, status_code=400)
            grant.family = secrets.token_hex(4)
        else:
            old = self.refresh.get(str(form["refresh_token"]))
            if old is None or old.family in self.ended or form["client_id"] not in self.clients:
                return JSONResponse({"error": "invalid_grant"}, status_code=400)
            if old.used:
                self.counts["reused"] += 1
                self.ended.add(old.family)
                return JSONResponse({"error": "invalid_grant"}, status_code=400)
            old.used = self.rotates
            grant = Grant(old.client, scope=old.scope, resource=old.resource, family=old.family)
        return JSONResponse(self._tokens(grant, str(form.get("refresh_token", ""))))

    def is_proven(self, request: Request, form: dict[str, Any]) -> bool:
        secret = self.clients.get(str(form.get("client_id")), {}).get("client_secret")
        if self.method == "client_secret_basic":
            basic = base64.b64encode(f"{form['client_id']}:{secret}".encode()).decode()
            return request.headers.get("authorization") == f"Basic {basic}" and "client_secret" not in form
        return form.get("client_secret") == (secret if self.method == "client_secret_post" else None)

    def _tokens(self, grant: Grant, refresh: str) -> dict[str, Any]:
        access = secrets.token_urlsafe(24)
        self.access[access] = (grant, time.time() + (self.lifetime or 1e9))
        answer: dict[str, Any] = {"access_token": access, "token_type": "bearer"}
        if self.lifetime is not None:
            answer["expires_in"] = self.lifetime
        if self.rotates or not refresh:
            answer["refresh_token"] = secrets.token_urlsafe(24)
            self.refresh[answer["refresh_token"]] = grant
        return answer

    async def forget(self, request: Request) -> Response:
        form = dict((await request.form()).items())
        self.counts["forget"] += 1
        if (grant := self.refresh.get(str(form["token"]))) is not None:
            self.ended.add(grant.family)
        return Response(status_code=200)

    async def verify_token(self, token: str) -> AccessToken | None:
        """As a `TokenVerifier` of the SDK."""
        grant, end = self.access.get(token, (None, 0.0))
        if grant is None or time.time() >= end or grant.family in self.ended:
            return None
        return AccessToken(token=token, client_id=grant.client, scopes=grant.scope.split(), resource=grant.resource)

    def end_access(self) -> None:
        """The access tokens end before their time."""
        self.access.clear()


@dataclass
class Protected:
    """A running pair. `url` is the address of the server of MCP."""

    authorization: AuthorizationServer
    url: str
    requests: Counter[str]

    def approve(self, address: str) -> None:
        """What a person and a browser do with the address that a login shows, in a thread of their own."""
        threading.Thread(target=browse, args=[address], daemon=True).start()


def browse(address: str) -> int:
    """Follows the redirects as a browser does, and gives the last status."""
    import httpx2

    return httpx2.get(address, follow_redirects=True, timeout=10, verify=False).status_code


def notes_server() -> Server[Any]:
    async def list_tools(context: Any, params: Any) -> mcp_types.ListToolsResult:
        reads = mcp_types.ToolAnnotations(read_only_hint=True)
        tool = mcp_types.Tool(
            name="read_note", description="Read a note.", input_schema={"type": "object"}, annotations=reads
        )
        return mcp_types.ListToolsResult(tools=[tool])

    async def call_tool(context: Any, params: Any) -> mcp_types.CallToolResult:
        return mcp_types.CallToolResult(content=[mcp_types.TextContent(type="text", text="a note")])

    return Server("notes", on_list_tools=list_tools, on_call_tool=call_tool)


def only_calls_are_guarded(app: Any, *, is_good: bool) -> Any:
    """Refuses calls of tools unless the token of the request is good."""

    async def guarded(scope: Any, receive: Any, send: Any) -> None:
        first = await receive()
        if b'"tools/call"' in first.get("body", b"") and not is_good:
            await Response(status_code=401, headers={"WWW-Authenticate": "Bearer"})(scope, receive, send)
            return
        waiting = [first]

        async def again() -> Any:
            return waiting.pop() if waiting else await receive()

        await app(scope, again, send)

    return guarded


@contextmanager
def protected_server(*, open_to_hello: bool = False) -> Iterator[Protected]:
    """Both servers, until the end of the block. With `open_to_hello`, only calls of tools need a token."""
    ours, theirs = (socket.create_server(("127.0.0.1", 0)) for _ in range(2))
    port = ours.getsockname()[1]
    authorization = AuthorizationServer(issuer=f"http://127.0.0.1:{theirs.getsockname()[1]}")
    url = f"http://127.0.0.1:{port}/mcp"
    settings = AuthSettings.model_validate(
        {
            "issuer_url": authorization.issuer,
            "resource_server_url": url,
            "required_scopes": [SCOPE],
            "validate_token_resource": True,
        }
    )
    if open_to_hello:
        assert settings.resource_server_url is not None
        resource = create_protected_resource_routes(settings.resource_server_url, [settings.issuer_url], [SCOPE])
        served: Any = notes_server().streamable_http_app(custom_starlette_routes=resource)
    else:
        served = notes_server().streamable_http_app(auth=settings, token_verifier=authorization)
    oauth = authorization.app()
    requests = Counter[str]()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["server"][1] != port:
            await oauth(scope, receive, send)
            return
        if scope["type"] == "http":
            requests[f"{scope['method']} {scope['path']}"] += 1
            if open_to_hello and scope["path"] == "/mcp":
                token = dict(scope["headers"]).get(b"authorization", b"").decode().removeprefix("Bearer ")
                is_good = await authorization.verify_token(token) is not None
                await only_calls_are_guarded(served, is_good=is_good)(scope, receive, send)
                return
        await served(scope, receive, send)

    server = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="on", ws="none"))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[ours, theirs])), daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.005)
    try:
        yield Protected(authorization, url, requests)
    finally:
        server.should_exit = server.force_exit = True
        thread.join(10)
        ours.close()
        theirs.close()
