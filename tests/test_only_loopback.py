"""The guard in conftest.py: a test reaches this machine and no other."""

import asyncio
import socket
import threading
from collections.abc import Iterator

import pytest

ELSEWHERE = ("192.0.2.1", 9)  # a documentation address: nothing answers there


@pytest.fixture
def server() -> Iterator[tuple[str, int]]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()


def test_loopback_is_allowed(server: tuple[str, int]) -> None:
    with socket.create_connection(server):
        pass
    with socket.create_connection(("localhost", server[1])):
        pass


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_another_machine_is_refused(family: socket.AddressFamily) -> None:
    address = ELSEWHERE if family == socket.AF_INET else ("2001:db8::1", 9, 0, 0)
    kind = socket.SOCK_STREAM
    with socket.socket(family, kind) as sock, pytest.raises(RuntimeError, match="only loopback is allowed"):
        sock.connect(address)
    with socket.socket(family, kind) as sock, pytest.raises(RuntimeError, match="only loopback is allowed"):
        sock.connect_ex(address)
    with (
        socket.socket(family, socket.SOCK_DGRAM) as sock,
        pytest.raises(RuntimeError, match="only loopback is allowed"),
    ):
        sock.sendto(b"", address)


def test_a_name_is_refused_before_it_is_looked_up() -> None:
    with pytest.raises(RuntimeError, match=r"tried to reach 'example\.org'"):
        socket.create_connection(("example.org", 443))


def test_asyncio_is_guarded_too() -> None:
    with pytest.raises(RuntimeError, match="only loopback is allowed"):
        asyncio.run(asyncio.open_connection(*ELSEWHERE))


def test_threads_are_guarded_too() -> None:
    caught: list[Exception] = []

    def reach() -> None:
        try:
            socket.create_connection(ELSEWHERE, timeout=1)
        except Exception as error:
            caught.append(error)

    thread = threading.Thread(target=reach)
    thread.start()
    thread.join()
    assert isinstance(caught[0], RuntimeError)


@pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="this system has no Unix sockets")
def test_unix_sockets_are_allowed() -> None:
    one, other = socket.socketpair()
    with one, other:
        one.sendall(b"x")
        assert other.recv(1) == b"x"
