"""Files that only their owner may read, in a folder of the user: written whole or not at all, never through a link."""

from __future__ import annotations

import os
import secrets
import stat
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from toolsearch.errors import SetupError

__all__ = ["cache_folder", "config_folder", "make_private_folder", "read_private", "state_folder", "write_private"]

_POSIX = os.name == "posix"


def state_folder(environ: Mapping[str, str] | None = None, home: Path | None = None, platform: str = "") -> Path:
    """Where this platform keeps what a program remembers of a user: TOOLSEARCH_STATE if it is set, else a folder below
    XDG_STATE_HOME or ~/.local/state, ~/Library/Application Support, or LOCALAPPDATA. It is not made.

    Raises `SetupError` if the user has no home folder.
    """
    environ = os.environ if environ is None else environ
    platform = platform or sys.platform
    if own := environ.get("TOOLSEARCH_STATE"):
        return Path(own).expanduser()
    home = home or _home("TOOLSEARCH_STATE")
    if platform == "win32":
        local = environ.get("LOCALAPPDATA")
        return (Path(local) if local else home / "AppData" / "Local") / "toolsearch" / "State"
    if platform == "darwin":
        return home / "Library" / "Application Support" / "toolsearch"
    return _xdg(environ, "XDG_STATE_HOME", home / ".local" / "state") / "toolsearch"


def config_folder(environ: Mapping[str, str] | None = None, home: Path | None = None, platform: str = "") -> Path:
    """Where this platform keeps what a user has set: a folder below XDG_CONFIG_HOME or ~/.config, ~/Library/Application
    Support, or APPDATA. It is not made.

    Raises `SetupError` if the user has no home folder.
    """
    environ = os.environ if environ is None else environ
    platform = platform or sys.platform
    home = home or _home("XDG_CONFIG_HOME")
    if platform == "win32":
        roaming = environ.get("APPDATA")
        return (Path(roaming) if roaming else home / "AppData" / "Roaming") / "toolsearch"
    if platform == "darwin":
        return home / "Library" / "Application Support" / "toolsearch"
    return _xdg(environ, "XDG_CONFIG_HOME", home / ".config") / "toolsearch"


def cache_folder(environ: Mapping[str, str] | None = None, home: Path | None = None, platform: str = "") -> Path:
    """Where this platform keeps what can be lost: a folder below XDG_CACHE_HOME or ~/.cache, ~/Library/Caches, or
    LOCALAPPDATA. It is not made.

    Raises `SetupError` if the user has no home folder.
    """
    environ = os.environ if environ is None else environ
    platform = platform or sys.platform
    home = home or _home("XDG_CACHE_HOME")
    if platform == "win32":
        local = environ.get("LOCALAPPDATA")
        return (Path(local) if local else home / "AppData" / "Local") / "toolsearch" / "Cache"
    if platform == "darwin":
        return home / "Library" / "Caches" / "toolsearch"
    return _xdg(environ, "XDG_CACHE_HOME", home / ".cache") / "toolsearch"


def _home(variable: str) -> Path:
    try:
        return Path.home()
    except RuntimeError:
        raise SetupError(f"this user has no home folder: set {variable} to a folder") from None


def _xdg(environ: Mapping[str, str], variable: str, otherwise: Path) -> Path:
    chosen = Path(environ.get(variable, ""))
    return chosen if chosen.is_absolute() else otherwise  # by the standard a relative one is ignored


def make_private_folder(folder: Path) -> None:
    """Makes a folder that only its owner may look into; if it is there, it is closed to others.

    Raises `SetupError` if it is a symbolic link, another user's, or cannot be made.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode):
            raise SetupError(f"{str(folder)!r} is not a folder but a link: remove it, or set TOOLSEARCH_STATE")
        if _POSIX and found.st_uid != os.getuid():
            raise SetupError(f"the folder {str(folder)!r} belongs to another user: set TOOLSEARCH_STATE to your own")
        if _POSIX and stat.S_IMODE(found.st_mode) & 0o077:
            folder.chmod(0o700)
    except OSError as error:
        raise SetupError(f"the folder {str(folder)!r} cannot be made: {error.strerror}") from None


def read_private(path: Path) -> bytes | None:
    """What the file holds; None if there is none.

    Raises `SetupError` if it is a symbolic link or no file, if others may read it, or if it cannot be read.
    """
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        number = os.open(path, flags | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        return None
    except OSError as error:
        why = "is a symbolic link" if path.is_symlink() else f"cannot be read: {error.strerror}"
        raise SetupError(f"the file {str(path)!r} {why}; it should be a file of your own") from None
    with os.fdopen(number, "rb") as file:
        found = os.fstat(number)
        if not stat.S_ISREG(found.st_mode):
            raise SetupError(f"{str(path)!r} is not a file: remove it")
        if _POSIX and (found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077):
            raise SetupError(f"others may read or own the file {str(path)!r}: it should be yours, with the mode 0600")
        return file.read()


def write_private(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Puts a file, for its owner alone unless another `mode` is given, in the place of the one there, or leaves that.

    Raises `SetupError` if it cannot be written, or if a symbolic link is in its place.
    """
    if path.is_symlink():
        raise SetupError(f"the file {str(path)!r} is a symbolic link; it should be a file of your own")
    draft = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    try:
        with os.fdopen(os.open(draft, flags, 0o600), "wb") as file:
            file.write(data)
            if _POSIX and mode != 0o600:
                os.fchmod(file.fileno(), mode)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        raise SetupError(f"the file {str(path)!r} cannot be written: {error.strerror}") from None
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
