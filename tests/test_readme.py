"""The README's code runs, block after block, as a reader would type it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

README = Path(__file__).parents[1] / "README.md"
TEXT = README.read_text(encoding="utf-8")
FENCE = re.compile(r"^```python[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
BLOCKS = [(TEXT.count("\n", 0, match.start(1)), match[1]) for match in FENCE.finditer(TEXT)]


@pytest.fixture(scope="module")
def namespace() -> dict[str, Any]:
    return {"__name__": "readme"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("readme")


def test_a_written_readme_has_code() -> None:
    assert BLOCKS or not TEXT.strip()


@pytest.mark.parametrize(("line", "code"), BLOCKS, ids=[f"line {line + 1}" for line, _ in BLOCKS])
def test_block_runs(
    line: int, code: str, namespace: dict[str, Any], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    exec(compile("\n" * line + code, str(README), "exec"), namespace)
