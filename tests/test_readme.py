"""The code of the README and of the guides runs, block after block, as a reader would type it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.xdist_group("pages")  # blocks build on the ones before: all in one process
ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "docs/functions.md")
FENCE = re.compile(r"^```python[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks_of(page: str) -> list[tuple[str, int, str]]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return [(page, text.count("\n", 0, match.start(1)), match[1]) for match in FENCE.finditer(text)]


BLOCKS = [block for page in PAGES for block in blocks_of(page)]


@pytest.fixture(scope="module")
def namespaces() -> dict[str, dict[str, Any]]:
    return {page: {"__name__": page} for page in PAGES}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("readme")


@pytest.mark.parametrize("page", PAGES)
def test_every_page_has_code(page: str) -> None:
    assert blocks_of(page)


@pytest.mark.parametrize(("page", "line", "code"), BLOCKS, ids=[f"{page} line {line + 1}" for page, line, _ in BLOCKS])
def test_block_runs(
    page: str,
    line: int,
    code: str,
    namespaces: dict[str, dict[str, Any]],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    exec(compile("\n" * line + code, str(ROOT / page), "exec"), namespaces[page])
