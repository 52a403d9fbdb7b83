"""A login renews itself: once for all processes, after any trouble but a refusal, and without a person."""

import asyncio
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

pytest.importorskip("mcp", reason="needs pip install 'toolsearch-kit[mcp]'")

from tests.mcp.oauth_servers import Protected, protected_server
from toolsearch import SetupError
from toolsearch.mcp.oauth import NeedsLogin, RenewalFailed, ServerAuth, auth_for, login_stamp
from toolsearch.mcp.oauth.keyring_door import open_keyring
from toolsearch.mcp.oauth.login import log_in
from toolsearch.mcp.oauth.renewal import SavedLogin
from toolsearch.mcp.oauth.store import Login, LoginStore, login_key

HELLO = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
HEADERS = {"Accept": "application/json, text/event-stream"}


@pytest.fixture(scope="module")
def running() -> Iterator[Protected]:
    with protected_server() as protected:
        yield protected


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LoginStore:
    monkeypatch.setenv("TOOLSEARCH_LOGINS", "file")
    monkeypatch.setattr("toolsearch.mcp.oauth.renewal.FRESH_SECONDS", 0.0)
    return LoginStore(tmp_path / "logins")


@pytest.fixture
def protected(running: Protected, store: LoginStore) -> Protected:
    """The servers, with somebody logged in."""
    server = running.authorization
    server.fails = server.answers_as = None
    server.lifetime, server.rotates = 3600, True
    asyncio.run(log_in("notes", running.url, lambda url, _: running.approve(url), store=store))
    server.counts.clear()
    return running


class Entry:
    def __init__(self, url: str) -> None:
        self.url = url
        self.headers: dict[str, str] = {}


def auth_of(protected: Protected, store: LoginStore) -> ServerAuth:
    auth = auth_for(Entry(protected.url), "notes", store=store)
    assert isinstance(auth, ServerAuth)
    return auth


def ask(protected: Protected, auth: ServerAuth, times: int = 1) -> list[int]:
    """The statuses of requests that are sent at once."""

    async def all_of_them() -> list[int]:
        async with httpx2.AsyncClient(auth=auth, verify=False) as client:
            asked = [client.post(protected.url, json=HELLO, headers=HEADERS) for _ in range(times)]
            return [response.status_code for response in await asyncio.gather(*asked)]

    return asyncio.run(all_of_them())


def kept(protected: Protected, store: LoginStore) -> Login:
    login = store.load(login_key("notes", protected.url))
    assert login is not None
    return login


def let_it_end(protected: Protected, store: LoginStore) -> None:
    """The access token has ended, by the clock and for the server."""
    login = kept(protected, store)
    shown = login.shown.model_copy(update={"expires_at": time.time() - 1})
    store.save(login_key("notes", protected.url), login.model_copy(update={"shown": shown}))
    protected.authorization.end_access()


def test_a_token_that_has_ended_is_renewed_before_it_is_sent(protected: Protected, store: LoginStore) -> None:
    """The SDK's client knows no more, after a restart, when its token ends, nor where to renew it: it logs in anew."""
    let_it_end(protected, store)
    before = protected.requests["POST /mcp"]
    assert 401 not in ask(protected, auth_of(protected, store))
    assert protected.requests["POST /mcp"] == before + 1
    assert protected.authorization.counts == {"refresh_token": 1}


def test_a_token_that_the_server_refuses_before_its_time_is_renewed(protected: Protected, store: LoginStore) -> None:
    protected.authorization.end_access()
    auth = auth_of(protected, store)
    assert 401 not in ask(protected, auth)
    assert protected.authorization.counts == {"refresh_token": 1}
    assert auth.problem is None


def test_a_new_token_that_is_refused_is_not_renewed_again_and_again(
    protected: Protected, store: LoginStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two processes that renew because the other one has renewed would never end."""
    monkeypatch.setattr("toolsearch.mcp.oauth.renewal.FRESH_SECONDS", 30.0)
    protected.authorization.end_access()
    auth = auth_of(protected, store)
    assert ask(protected, auth, 3) == [401, 401, 401]
    assert isinstance(auth.problem, NeedsLogin)
    assert protected.authorization.counts == {}


def test_many_requests_and_connections_renew_once(protected: Protected, store: LoginStore) -> None:
    """The authorization server rotates refresh tokens, and ends a login whose old one is used again."""
    let_it_end(protected, store)
    statuses: list[int] = []
    threads = [
        threading.Thread(target=lambda: statuses.extend(ask(protected, auth_of(protected, store), 4))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(statuses) == 16
    assert 401 not in statuses
    assert protected.authorization.counts == {"refresh_token": 1}


PROCESS = """
import sys
from pathlib import Path
from toolsearch.mcp.oauth.renewal import SavedLogin
from toolsearch.mcp.oauth.store import LoginStore
login = SavedLogin("notes", sys.argv[1], LoginStore(Path(sys.argv[2])))
print("ready", flush=True)
sys.stdin.readline()
print(login.token())
"""


def test_two_processes_do_not_race_for_a_refresh_token(protected: Protected, store: LoginStore) -> None:
    let_it_end(protected, store)
    command = [sys.executable, "-c", PROCESS, protected.url, str(store.folder)]
    processes = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    tokens = {process.communicate(timeout=30)[0].strip() for process in processes}
    assert tokens == {kept(protected, store).tokens.access_token}
    assert protected.authorization.counts == {"refresh_token": 1}


@pytest.mark.parametrize("trouble", ["503", "429", "500", "no answer", "a page of a proxy", "403"])
def test_trouble_on_the_way_does_not_lock_out_for_good(protected: Protected, store: LoginStore, trouble: str) -> None:
    let_it_end(protected, store)
    server = protected.authorization
    login = kept(protected, store)
    if trouble == "no answer":
        elsewhere = json.loads(login.model_dump_json())
        elsewhere["metadata"]["token_endpoint"] = "http://127.0.0.1:9/nobody"
        store.save(login_key("notes", protected.url), Login.model_validate(elsewhere))
    elif trouble.isdigit():
        server.fails = int(trouble)
    else:
        server.answers_as = b"<html>Sign in to the wireless network</html>"
    auth = auth_of(protected, store)
    assert ask(protected, auth) == [401]
    assert isinstance(auth.problem, RenewalFailed)
    assert "kept" in str(auth.problem)
    server.fails = server.answers_as = None
    if trouble == "no answer":
        store.save(login_key("notes", protected.url), login)
    assert 401 not in ask(protected, auth)
    assert auth.problem is None


def test_trouble_on_the_way_is_no_trouble_while_the_token_lasts(protected: Protected, store: LoginStore) -> None:
    login = kept(protected, store)
    soon = login.shown.model_copy(update={"expires_at": time.time() + 5})
    store.save(login_key("notes", protected.url), login.model_copy(update={"shown": soon}))
    protected.authorization.fails = 503
    assert 401 not in ask(protected, auth_of(protected, store))


def test_a_login_that_is_over_needs_a_person_and_is_not_tried_again(protected: Protected, store: LoginStore) -> None:
    let_it_end(protected, store)
    protected.authorization.refresh.clear()
    auth = auth_of(protected, store)
    assert ask(protected, auth, 2) == [401, 401]
    assert isinstance(auth.problem, NeedsLogin)
    assert "run toolsearch login notes" in str(auth.problem)
    assert protected.authorization.counts == {"refresh_token": 1}
    with pytest.raises(NeedsLogin, match="invalid_grant"):
        auth_of(protected, store)


def test_a_connection_takes_the_login_that_is_made_meanwhile(protected: Protected, store: LoginStore) -> None:
    let_it_end(protected, store)
    protected.authorization.refresh.clear()
    auth = auth_of(protected, store)
    before = login_stamp(Entry(protected.url), "notes", store=store)
    assert ask(protected, auth) == [401]
    asyncio.run(log_in("notes", protected.url, lambda url, _: protected.approve(url), store=store))
    assert login_stamp(Entry(protected.url), "notes", store=store) not in (None, before)
    assert 401 not in ask(protected, auth)
    assert auth.problem is None


def test_a_server_that_keeps_its_refresh_token_renews_again_and_again(protected: Protected, store: LoginStore) -> None:
    protected.authorization.rotates = False
    for _ in range(2):
        let_it_end(protected, store)
        assert 401 not in ask(protected, auth_of(protected, store))
    assert protected.authorization.counts == {"refresh_token": 2}


def test_a_request_that_is_given_up_loses_no_token(protected: Protected, store: LoginStore) -> None:
    """The server has rotated by then: an answer that nobody reads would be the end of the login."""
    let_it_end(protected, store)
    key = login_key("notes", protected.url)
    auth = auth_of(protected, store)

    async def give_up() -> None:
        async with httpx2.AsyncClient(auth=auth, verify=False) as client:
            with store.lock(key, 1):  # so that it waits
                asked = asyncio.ensure_future(client.post(protected.url, json=HELLO, headers=HEADERS))
                await asyncio.sleep(0.1)
                asked.cancel()
                await asyncio.gather(asked, return_exceptions=True)

    old = kept(protected, store).tokens.access_token
    asyncio.run(give_up())
    while kept(protected, store).tokens.access_token == old:
        time.sleep(0.01)
    assert 401 not in ask(protected, auth_of(protected, store))
    assert protected.authorization.counts == {"refresh_token": 1}


def test_who_holds_the_lock_for_too_long_is_waited_for_no_longer(
    protected: Protected, store: LoginStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolsearch.mcp.oauth.renewal.LOCK_SECONDS", 0.05)
    let_it_end(protected, store)
    login = SavedLogin("notes", protected.url, store)
    with store.lock(login.key, 1), pytest.raises(RenewalFailed, match="another process"):
        login.token()
    assert login.token() == kept(protected, store).tokens.access_token


class Ring:
    """What stands in for the package `keyring`: its module and one backend."""

    priority: float = 5

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], str] = {}
        self.backends: list[Ring] = []
        self.most = 1_000_000
        self.is_locked = False

    def get_keyring(self) -> "Ring":
        return self

    def get_password(self, service: str, username: str) -> str | None:
        if self.is_locked:
            raise RuntimeError("locked")
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        if len(password) > self.most:
            raise ValueError("too long")
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.kept[service, username]


@pytest.fixture
def ring(monkeypatch: pytest.MonkeyPatch) -> Ring:
    ring = Ring()
    monkeypatch.setitem(sys.modules, "keyring", ring)
    monkeypatch.delenv("TOOLSEARCH_LOGINS", raising=False)
    return ring


def test_the_keyring_keeps_the_secrets_where_there_is_one(running: Protected, tmp_path: Path, ring: Ring) -> None:
    store = LoginStore(tmp_path / "logins")
    running.authorization.fails = None
    shown = asyncio.run(log_in("notes", running.url, lambda url, _: running.approve(url), store=store))
    login = kept(running, store)
    files = b"".join(file.read_bytes() for file in store.folder.iterdir())
    assert login.tokens.access_token.encode() not in files
    assert (login.tokens.refresh_token or "-").encode() not in files
    assert len(ring.kept) == 1
    assert [each.kept_in for each in store] == ["keyring"]
    assert shown.server == "notes"
    let_it_end(running, store)
    assert 401 not in ask(running, auth_of(running, store))
    ring.is_locked = True
    auth = auth_of(running, store)
    assert ask(running, auth) == [401]
    assert "unlock" in str(auth.problem)
    assert store.remove(login_key("notes", running.url))
    assert ring.kept == {}


def test_a_keyring_that_refuses_long_secrets_or_keeps_plain_text_is_not_used(
    running: Protected, tmp_path: Path, ring: Ring, monkeypatch: pytest.MonkeyPatch
) -> None:
    ring.most = 10
    store = LoginStore(tmp_path / "logins")
    asyncio.run(log_in("notes", running.url, lambda url, _: running.approve(url), store=store))
    assert (ring.kept, [each.kept_in for each in store]) == ({}, ["file"])
    monkeypatch.setenv("TOOLSEARCH_LOGINS", "keyring")
    plain = Ring()
    ring.most, plain.priority, ring.backends = 1_000_000, 0.5, [plain]
    with pytest.raises(SetupError, match="there is none"):
        open_keyring()
    ring.priority, ring.backends = 0.5, []
    with pytest.raises(SetupError, match="there is none"):
        open_keyring()
