"""How much memory there is, so that what does not fit is refused before it is read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from unbraid.errors import FileError

CONTROL = Path("/sys/fs/cgroup")
"""Where Linux keeps the limits of containers and batch jobs."""
GIB = 2**30


def check_memory(what: str, size: int) -> None:
    """Refuse to read `size` bytes where they are more than half of the memory available: fitting needs some, too."""
    available = available_memory()
    if available is not None and size > available // 2:
        raise FileError(
            f"{what} would take {size / GIB:.3g} GiB of memory, and half of the {available / GIB:.3g} GiB available "
            "is the most that is read: keep fewer samples, or use a machine with more memory."
        )


def available_memory() -> int | None:
    """Bytes this process may still take, or None where the system does not tell."""
    known = [size for size in (free_memory(), *group_memory()) if size is not None]
    return max(min(known), 0) if known else None


def free_memory() -> int | None:
    """Bytes that the machine can hand out: what is free, and on Linux also what it could free."""
    for line in read_lines(Path("/proc/meminfo")):
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    for pages in ("SC_AVPHYS_PAGES", "SC_PHYS_PAGES"):
        if hasattr(os, "sysconf") and pages in os.sysconf_names:
            return os.sysconf(pages) * os.sysconf("SC_PAGE_SIZE")
    return None


def group_memory() -> Iterator[int]:
    """Bytes left under each limit that is set on this process's control group, of version 1 or 2."""
    for line in read_lines(Path("/proc/self/cgroup")):
        _, controllers, place = line.split(":", 2)
        if controllers == "":
            root, limit, used = CONTROL, "memory.max", "memory.current"
        elif "memory" in controllers.split(","):
            root, limit, used = CONTROL / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes"
        else:
            continue
        for folder in {root, root / place.lstrip("/")}:
            most, taken = read_number(folder / limit), read_number(folder / used)
            if most is not None and taken is not None:
                yield most - taken + cached(folder)


def cached(folder: Path) -> int:
    """Bytes that a control group uses for files only, and gives back when asked."""
    found = dict(line.split(maxsplit=1) for line in read_lines(folder / "memory.stat"))
    return int(found.get("total_inactive_file", found.get("inactive_file", "0")))


def read_number(path: Path) -> int | None:
    """The number that a file of the system holds, or None."""
    found = read_lines(path)
    return int(found[0]) if found and found[0].isdigit() else None


def read_lines(path: Path) -> list[str]:
    """The lines of a file of the system; none where there is no such file."""
    try:
        return path.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return []
