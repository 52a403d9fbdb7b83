"""What every test gets: no network but loopback, and the built wheel for those that ask for it."""

import ipaddress
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent


class NetworkForbidden(RuntimeError):
    """A test tried to leave this machine."""


def _require_loopback(host: object) -> None:
    name = host.decode() if isinstance(host, bytes) else host
    if name in (None, "", "localhost"):
        return
    try:
        address = ipaddress.ip_address(str(name).partition("%")[0])
    except ValueError:
        address = None
    if address is None or not (address.is_loopback or address.is_unspecified):
        raise NetworkForbidden(
            f"a test tried to reach {name!r}: only loopback is allowed. Use a scripted server on 127.0.0.1."
        )


def _guarded(function: Callable[..., Any]) -> Callable[..., Any]:
    """A socket method whose last positional argument is the address it would reach."""

    def guarded(self: socket.socket, *args: Any) -> Any:
        if self.family in (socket.AF_INET, socket.AF_INET6) and args and isinstance(args[-1], tuple):
            _require_loopback(args[-1][0])
        return function(self, *args)

    return guarded


def pytest_configure() -> None:
    """Guard the sockets of this process, collection included."""
    for name in ("connect", "connect_ex", "sendto"):
        setattr(socket.socket, name, _guarded(getattr(socket.socket, name)))
    resolve = socket.getaddrinfo

    def getaddrinfo(host: Any, *args: Any, **options: Any) -> Any:
        _require_loopback(host)
        return resolve(host, *args, **options)

    socket.getaddrinfo = getaddrinfo


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel built from this checkout, without a network: the build back end is a development dependency."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "-qq",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        str(folder),
        str(ROOT),
    ]
    subprocess.run(build, check=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="session")
def bare_python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment that holds the wheel, what the wheel requires, and nothing else.

    The requirements are copied from the environment the tests run in, so this needs no network; `pip check` then
    confirms that nothing is missing.
    """
    folder = tmp_path_factory.mktemp("bare")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    site = subprocess.run(
        [python, "-I", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        check=True, capture_output=True, text=True,
    ).stdout.strip()  # fmt: skip
    pip = [sys.executable, "-m", "pip", "--python", str(python)]
    subprocess.run([*pip, "install", "-qq", "--no-deps", "--no-index", str(wheel)], check=True)
    (installed,) = metadata.distributions(name="toolsearch-kit", path=[site])
    for name in sorted(_closure(installed.requires or [])):
        _copy(metadata.distribution(name), Path(site))
    checked = subprocess.run([*pip, "check"], check=False, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout
    return python


def _closure(requirements: list[str]) -> set[str]:
    """The names of what must be installed for these requirements, extras not asked for."""
    found: set[str] = set()
    waiting = list(requirements)
    while waiting:
        requirement = Requirement(waiting.pop())
        wanted = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        if wanted and requirement.name not in found:
            found.add(requirement.name)
            waiting += metadata.requires(requirement.name) or []
    return found


def _copy(distribution: metadata.Distribution, site: Path) -> None:
    for file in distribution.files or []:
        if ".." not in file.parts and "__pycache__" not in file.parts:  # neither scripts nor byte code
            target = site / file
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(Path(str(file.locate())).read_bytes())
