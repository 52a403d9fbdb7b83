"""Logging in to servers that ask for it: once, by a person, in a browser that nobody opens unasked."""

import asyncio
import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

pytest.importorskip("mcp", reason="needs pip install 'toolsearch-kit[mcp]'")

from tests.mcp.oauth_servers import SCOPE, Protected, browse, protected_server
from toolsearch import SetupError
from toolsearch.mcp.oauth import NeedsLogin, NeedsMoreRights, ServerAuth, auth_for
from toolsearch.mcp.oauth.login import ClientOptions, log_in, log_out
from toolsearch.mcp.oauth.store import LoginStore, Shown, login_key


@pytest.fixture
def protected() -> Iterator[Protected]:
    with protected_server() as running:
        yield running


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LoginStore:
    monkeypatch.setenv("TOOLSEARCH_LOGINS", "file")
    monkeypatch.setattr("toolsearch.mcp.oauth.renewal.FRESH_SECONDS", 0.0)
    return LoginStore(tmp_path / "logins")


def login(protected: Protected, store: LoginStore, **options: object) -> Shown:
    return asyncio.run(
        log_in("notes", protected.url, lambda url, _: protected.approve(url), store=store, **options)  # type: ignore[arg-type]
    )


class Entry:
    def __init__(self, url: str, **headers: str) -> None:
        self.url, self.headers = url, headers


async def ask(protected: Protected, store: LoginStore, times: int = 1) -> list[int]:
    """Requests of one connection, one after the other; their statuses."""
    auth = auth_for(Entry(protected.url), "notes", store=store)
    hello = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    async with httpx2.AsyncClient(auth=auth, verify=False) as client:
        headers = {"Accept": "application/json, text/event-stream"}
        return [(await client.post(protected.url, json=hello, headers=headers)).status_code for _ in range(times)]


def test_a_login_registers_asks_a_person_and_is_kept_for_the_user_alone(
    protected: Protected, store: LoginStore
) -> None:
    shown = login(protected, store)
    assert (shown.server, shown.url, shown.renewable) == ("notes", protected.url, True)
    assert protected.authorization.counts == {"register": 1, "authorize": 1, "authorization_code": 1}
    (file,) = store.folder.glob("*.json")
    if os.name == "posix":
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(store.folder.stat().st_mode) == 0o700
    kept = store.load(login_key("notes", protected.url))
    assert kept is not None
    assert kept.resource == protected.url
    assert 401 not in asyncio.run(ask(protected, store))


def test_the_token_is_for_the_server_alone_and_for_the_rights_that_the_server_or_the_user_names(
    protected: Protected, store: LoginStore
) -> None:
    login(protected, store)
    login(protected, store, options=ClientOptions(scopes=("notes:write", SCOPE)))
    grants = [grant for grant, _ in protected.authorization.access.values()]
    assert [grant.resource for grant in grants] == [protected.url] * 2
    assert [set(grant.scope.split()) for grant in grants] == [{SCOPE}, {SCOPE, "notes:write"}]


def test_a_login_works_after_the_server_has_forgotten_its_clients(protected: Protected, store: LoginStore) -> None:
    """chatcli#1308: a client that is used again for ever is a login that fails for ever."""
    login(protected, store)
    protected.authorization.clients.clear()
    login(protected, store)
    assert protected.authorization.counts["register"] == 2


def test_a_server_that_wants_a_name_for_this_machine_gets_one(protected: Protected, store: LoginStore) -> None:
    protected.authorization.wants_localhost = True
    login(protected, store)
    (client,) = protected.authorization.clients.values()
    assert client["redirect_uris"][0].startswith("http://localhost:")


def test_the_port_of_the_answer_is_taken(protected: Protected, store: LoginStore) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(SetupError, match="cannot be used"):
        login(protected, store, options=ClientOptions(port=taken.getsockname()[1]))


def test_a_client_that_is_registered_already_is_not_registered_again(protected: Protected, store: LoginStore) -> None:
    protected.authorization.registers = False
    with pytest.raises(SetupError, match="clientId"):
        login(protected, store)
    protected.authorization.clients["ours"] = {"redirect_uris": ["http://127.0.0.1:39417/callback"]}
    login(protected, store, options=ClientOptions(client_id="ours", port=39417))
    assert [grant.client for grant, _ in protected.authorization.access.values()] == ["ours"]
    assert protected.authorization.counts["register"] == 0


@pytest.mark.parametrize("method", ["client_secret_post", "client_secret_basic"])
def test_a_client_with_a_secret_proves_itself_as_the_server_wants(
    protected: Protected, store: LoginStore, method: str
) -> None:
    """Registered by itself, and by hand; when it logs in, and when it renews."""
    server = protected.authorization
    server.method = method
    login(protected, store)
    server.end_access()
    assert 401 not in asyncio.run(ask(protected, store))
    server.clients["ours"] = {"redirect_uris": ["http://127.0.0.1:39419/callback"], "client_secret": "s3cret"}
    login(protected, store, options=ClientOptions(client_id="ours", client_secret="s3cret", port=39419))
    server.end_access()
    assert 401 not in asyncio.run(ask(protected, store))
    assert server.counts["refresh_token"] == 2


def test_a_server_that_minds_calls_only_is_logged_in_to_all_the_same(store: LoginStore) -> None:
    with protected_server(open_to_hello=True) as protected:
        assert login(protected, store).renewable


def test_a_person_who_says_no_ends_the_login(protected: Protected, store: LoginStore) -> None:
    protected.authorization.refuses = "access_denied"
    with pytest.raises(SetupError, match="access_denied: the person said no"):
        login(protected, store)
    assert list(store) == []


def test_an_answer_that_nobody_asked_for_is_turned_away_and_the_login_goes_on(
    protected: Protected, store: LoginStore
) -> None:
    """Whoever reaches the port of the redirect can neither end a login nor slip in a code of their own."""
    statuses = []

    async def check() -> Shown:
        def show(address: str, redirect: object) -> None:
            async def intrude() -> None:
                uri = redirect.uri  # type: ignore[attr-defined]
                async with httpx2.AsyncClient() as client:
                    answers = ("?code=x&state=wrong", "?code=x", "?error=access_denied&state=", "/../x?code=x")
                    statuses.extend([(await client.get(uri + answer)).status_code for answer in answers])
                    stranger = await client.get(uri, headers={"Host": "evil.example"})
                    statuses.append(stranger.status_code)
                protected.approve(address)

            tasks.append(asyncio.ensure_future(intrude()))

        tasks: list[asyncio.Future[None]] = []
        return await log_in("notes", protected.url, show, store=store)

    asyncio.run(check())
    assert statuses == [400, 400, 400, 404, 404]
    assert protected.authorization.counts["authorization_code"] == 1


def test_an_answer_of_another_authorization_server_is_refused(protected: Protected, store: LoginStore) -> None:
    """RFC 9207: a code of one server must not go to another."""
    protected.authorization.other_issuer = "https://elsewhere.example"
    with pytest.raises(SetupError, match="failed"):
        login(protected, store)
    assert protected.authorization.counts["authorization_code"] == 0
    assert list(store) == []


def test_each_login_proves_that_it_asked_for_its_code(protected: Protected, store: LoginStore) -> None:
    login(protected, store)
    login(protected, store)
    assert len({*protected.authorization.proofs}) == 2


def test_nobody_answers(protected: Protected, store: LoginStore) -> None:
    with pytest.raises(SetupError, match="toolsearch login notes again"):
        asyncio.run(log_in("notes", protected.url, lambda *_: None, store=store, seconds=0.3))
    assert list(store) == []


def test_a_login_over_plain_http_to_another_machine_is_refused_before_anything_is_sent(store: LoginStore) -> None:
    with pytest.raises(SetupError, match="plain text"):
        asyncio.run(log_in("notes", "http://notes.example/mcp", lambda *_: None, store=store))


def test_a_server_without_a_login_says_so(store: LoginStore) -> None:
    with protected_server(open_to_hello=True) as protected:
        protected.authorization.registers = False
        with pytest.raises(SetupError, match="nothing to do"):
            login(protected, store)


def test_logging_out_forgets_the_login_here_and_there(protected: Protected, store: LoginStore) -> None:
    login(protected, store)
    assert log_out("notes", protected.url, store)
    assert protected.authorization.counts["forget"] == 1
    assert list(store) == []
    assert not log_out("notes", protected.url, store)
    assert asyncio.run(ask(protected, store)) == [401]


def test_the_token_goes_to_no_other_address_of_the_same_name(protected: Protected, store: LoginStore) -> None:
    """An mcp.json of somebody else that says `notes` gets no token of ours."""
    login(protected, store)
    elsewhere = auth_for(Entry(protected.url.replace("/mcp", "/evil")), "notes", store=store)
    assert elsewhere is not None

    async def sent(auth: httpx2.Auth, url: str) -> str | None:
        flow = auth.async_auth_flow(httpx2.Request("GET", url))
        request = await anext(flow)
        await flow.aclose()
        return request.headers.get("Authorization")

    ours = auth_for(Entry(protected.url), "notes", store=store)
    assert ours is not None
    assert asyncio.run(sent(elsewhere, protected.url.replace("/mcp", "/evil"))) is None
    assert asyncio.run(sent(ours, "https://elsewhere.example/mcp")) is None
    assert asyncio.run(sent(ours, protected.url)) is not None


def test_an_entry_with_a_token_of_its_own_or_without_an_address_has_no_login(store: LoginStore) -> None:
    own = auth_for(Entry("https://x.example/mcp", authorization="Bearer t"), "x", store=store)
    assert own is not None
    assert not isinstance(own, ServerAuth)
    assert auth_for(Entry(""), "x", store=store) is None


def test_what_others_could_have_put_there_is_not_read(protected: Protected, store: LoginStore, tmp_path: Path) -> None:
    login(protected, store)
    (file,) = store.folder.glob("*.json")
    text = file.read_text("utf-8")
    if os.name == "posix":
        file.chmod(0o644)
        with pytest.raises(SetupError, match="0600"):
            auth_for(Entry(protected.url), "notes", store=store)
    file.unlink()
    (tmp_path / "theirs.json").write_text(text, "utf-8")
    (tmp_path / "theirs.json").chmod(0o600)
    try:
        file.symlink_to(tmp_path / "theirs.json")
    except OSError:
        return  # Windows lets few users make links
    with pytest.raises(SetupError, match="symbolic link"):
        auth_for(Entry(protected.url), "notes", store=store)
    with pytest.raises(SetupError, match="symbolic link"):
        login(protected, store)
    assert (tmp_path / "theirs.json").read_text("utf-8") == text
    assert log_out("notes", protected.url, store)


def test_no_token_stands_in_what_is_shown_or_logged(
    protected: Protected, store: LoginStore, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level("INFO"):
        login(protected, store)
        asyncio.run(ask(protected, store, 2))
        protected.authorization.end_access()
        asyncio.run(ask(protected, store))
    kept = store.load(login_key("notes", protected.url))
    assert kept is not None
    seen = caplog.text + repr(list(store)) + "".join(capfd.readouterr())
    assert kept.tokens.access_token not in seen
    assert (kept.tokens.refresh_token or "-") not in seen


def test_a_request_that_needs_more_rights_names_the_command(protected: Protected, store: LoginStore) -> None:
    with pytest.raises(SetupError, match="refuses the token"):
        login(protected, store, options=ClientOptions(scopes=("notes:write",)))
    login(protected, store)
    for grant, _ in protected.authorization.access.values():
        grant.scope = "notes:write"  # and not what the server wants

    async def check() -> str:
        auth = auth_for(Entry(protected.url), "notes", store=store)
        assert isinstance(auth, ServerAuth)
        async with httpx2.AsyncClient(auth=auth, verify=False) as client:
            assert (await client.post(protected.url, json={})).status_code == 403
        assert isinstance(auth.problem, NeedsMoreRights)
        return str(auth.problem)

    assert asyncio.run(check()).endswith("run toolsearch login notes --scope notes:read")


def test_a_login_that_is_over_is_known_before_anything_is_sent(protected: Protected, store: LoginStore) -> None:
    login(protected, store)
    protected.authorization.end_access()
    protected.authorization.clients.clear()
    assert asyncio.run(ask(protected, store)) == [401]
    with pytest.raises(NeedsLogin, match="run toolsearch login notes"):
        auth_for(Entry(protected.url), "notes", store=store)
    assert browse(f"{protected.authorization.issuer}/.well-known/oauth-authorization-server") == 200
