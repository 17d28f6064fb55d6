"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import platform
import secrets
import shutil
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import BinaryIO

from unbraid.errors import FileError, check_path

StrPath = str | os.PathLike[str]
ABANDONED = 86400.0
"""Seconds after which nobody on another machine is still writing a temporary file that has not changed since."""
START, END = ".unbraid-", ".tmp"
"""How names of temporary files begin and end."""
THIS_RUN = secrets.token_hex(4)
"""Tells this process from an earlier one of the same number, as processes in containers often have."""


@contextmanager
def replacing(path: StrPath) -> Iterator[BinaryIO]:
    """Open a binary file that takes the place of `path` when the block ends without an error.

    The bytes go to a temporary file in the same folder, reach the disk, and only then get the name. Whatever
    goes wrong before that leaves an older file as it was, and no temporary file behind; those that killed
    processes have left in the folder are removed.
    """
    target = check_writable(path)
    remove_left_over(target.parent)
    temporary = temporary_file(target)
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, temporary)
        temporary.replace(target)
    except BaseException as error:
        with suppress(OSError):  # the folder itself may be gone
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise FileError(f"{path} cannot be written: {why_refused(error)}.") from error
        raise
    sync_folder(target.parent)


def opened(path: StrPath, kind: str) -> BinaryIO:
    """Open a file to be read as a `kind`, "an .npz file", say; a `FileError` with a sentence where there is none."""
    check_path("path", path)
    try:
        if Path(path).exists() and not (Path(path).is_file() or Path(path).is_dir()):
            raise FileError(f"{path} is a device or a pipe, not {kind}.")  # opening it may wait for ever
        return Path(path).open("rb")
    except FileError:
        raise
    except FileNotFoundError:
        raise FileError(f"{path} does not exist.") from None
    except IsADirectoryError:
        raise FileError(f"{path} is a folder, not {kind}.") from None
    except (OSError, ValueError) as error:
        raise FileError(f"{path!s:.200} cannot be read: {why_refused(error)}.") from error


def temporary_file(target: Path) -> Path:
    """A new file beside the target, whose name tells the machine and the process that writes it."""
    return target.with_name(f"{START}{short_hash(this_machine())}-{os.getpid()}-{THIS_RUN}-{secrets.token_hex(4)}{END}")


@cache
def this_machine() -> str:
    """Where the numbers of processes mean what they mean here: the machine, and the container if this is one."""
    with suppress(OSError):
        return f"{platform.node()} {Path('/proc/self/ns/pid').readlink()}"
    return platform.node()


def short_hash(name: str) -> str:
    """Eight letters that stand for a name of any length, with any characters."""
    return f"{zlib.crc32(name.encode(errors='surrogateescape')):08x}"


def remove_left_over(folder: Path) -> None:
    """Remove temporary files that killed processes have left in a folder, and none of a process that is alive."""
    for temporary in folder.glob(f"{START}*{END}"):
        with suppress(OSError):
            if is_abandoned(temporary):
                temporary.unlink()


def is_abandoned(temporary: Path) -> bool:
    """Whether the process that wrote a temporary file is gone; one of another machine, if it has not for a day."""
    parts = temporary.name.removeprefix(START).removesuffix(END).split("-")
    if len(parts) == 4 and parts[0] == short_hash(this_machine()) and parts[1].isdecimal():
        process = int(parts[1])
        return parts[2] != THIS_RUN if process == os.getpid() else not is_alive(process)
    return time.time() - temporary.stat().st_mtime > ABANDONED


def is_alive(process: int) -> bool:
    """Whether there is a process of that number on this machine."""
    if os.name == "nt":  # where os.kill ends the process it asks about
        import ctypes

        handle = ctypes.windll.kernel32.OpenProcess(0x1000, False, process)  # type: ignore[attr-defined,unused-ignore]
        ctypes.windll.kernel32.CloseHandle(handle)  # type: ignore[attr-defined,unused-ignore]
        return bool(handle)
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):  # no number that a process can have
        return False
    except OSError:
        return True
    return True


def make_folder(folder: Path, named: StrPath | None = None) -> Path:
    """Make a folder and those above it; a `FileError` about `named`, or the folder itself, where that fails."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{named or folder} cannot be written: {why_refused(error)}.") from error
    return folder


def check_writable(path: StrPath) -> Path:
    """Where `path` leads, links followed; refused where no file could be written. Ask before long work."""
    check_path("path", path)
    try:
        target = Path(path).resolve()
        folder = target.parent
        if target.is_dir() or names_folder(path):
            raise FileError(f"{path} cannot be written: it is a folder, so add a file name.")
        if target.exists() and not target.is_file():
            raise FileError(f"{path} cannot be written: it is a device or a pipe, and only a file can be replaced.")
        if not folder.is_dir():
            raise FileError(f"{path} cannot be written: its folder does not exist, so create {folder} first.")
        if not os.access(folder, os.W_OK) or (target.exists() and not os.access(target, os.W_OK)):
            raise FileError(f"{path} cannot be written: permission denied.")
    except (OSError, RuntimeError, ValueError) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"{path!s:.200} cannot be written: {why_refused(error)}.") from error
    return target


def names_folder(path: StrPath) -> bool:
    """Whether a path can only be that of a folder, whether there is one or not: it ends in a slash."""
    return os.fspath(path).endswith((os.sep, os.altsep or os.sep, f"{os.sep}."))


def sync_folder(folder: Path) -> None:
    """Let the new name reach the disk as well, where the system has a way to ask for it."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def why_refused(error: Exception) -> str:
    """What the system said when it refused, without its number and the file's name: 'permission denied'."""
    said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return said[:1].lower() + said[1:].rstrip(".") if said else type(error).__name__
