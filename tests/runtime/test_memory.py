"""How much memory there is: what the machine has, and what the process is allowed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from unbraid.errors import FileError
from unbraid.runtime import memory


def system(monkeypatch: pytest.MonkeyPatch, files: dict[str, str]) -> None:
    """A machine with these files in /proc and /sys, and no others."""
    monkeypatch.setattr(memory, "read_lines", lambda path: files.get(str(path), "").splitlines())


MACHINE = {"/proc/meminfo": "MemTotal: 9000 kB\nMemAvailable:    4000 kB\n"}


def test_this_machine_has_some() -> None:
    available = memory.available_memory()
    assert available is None or available > 2**20


def test_what_could_be_freed_counts_as_available(monkeypatch: pytest.MonkeyPatch) -> None:
    system(monkeypatch, MACHINE)
    assert memory.available_memory() == 4000 * 1024


@pytest.mark.parametrize("folder", ["/sys/fs/cgroup/job", "/sys/fs/cgroup"])
def test_a_control_group_of_version_2_sets_the_limit(monkeypatch: pytest.MonkeyPatch, folder: str) -> None:
    group = {"memory.max": "1000\n", "memory.current": "700\n", "memory.stat": "anon 5\ninactive_file 100\n"}
    files = {f"{folder}/{name}": text for name, text in group.items()}
    system(monkeypatch, {**MACHINE, "/proc/self/cgroup": "0::/job\n", **files})
    assert memory.available_memory() == 400


def test_a_control_group_of_version_1_sets_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = "/sys/fs/cgroup/memory/a/b"
    group = {f"{folder}/memory.limit_in_bytes": "5000\n", f"{folder}/memory.usage_in_bytes": "6000\n"}
    system(monkeypatch, {**MACHINE, "/proc/self/cgroup": "5:cpu:/a\n4:memory:/a/b\n", **group})
    assert memory.available_memory() == 0


def test_no_limit_is_no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    group = {"/sys/fs/cgroup/memory.max": "max\n", "/sys/fs/cgroup/memory.current": "700\n"}
    system(monkeypatch, {**MACHINE, "/proc/self/cgroup": "0::/\n", **group})
    assert memory.available_memory() == 4000 * 1024


def test_other_systems_are_asked_for_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    system(monkeypatch, {})
    monkeypatch.setattr(os, "sysconf_names", {"SC_PHYS_PAGES": 0, "SC_PAGE_SIZE": 1}, raising=False)
    monkeypatch.setattr(os, "sysconf", {"SC_PHYS_PAGES": 100, "SC_PAGE_SIZE": 4096}.__getitem__, raising=False)
    assert memory.available_memory() == 409600
    monkeypatch.delattr(os, "sysconf")
    assert memory.available_memory() is None
    memory.check_memory("Anything", 2**80)


def test_more_than_half_is_refused_with_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_memory", lambda: 4 * 2**30)
    memory.check_memory("Reading data.csv", 2 * 2**30)
    with pytest.raises(FileError) as caught:
        memory.check_memory("Reading data.csv", 3 * 2**30)
    assert str(caught.value) == (
        "Reading data.csv would take 3 GiB of memory, and half of the 4 GiB available is the most that is read: "
        "keep fewer samples, or use a machine with more memory."
    )


def test_a_file_that_is_not_there_has_no_lines(tmp_path: Path) -> None:
    assert memory.read_lines(tmp_path / "none") == []
