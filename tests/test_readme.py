"""The code of the README and of the pages it leads to runs, block after block, as a reader would type it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "docs/selecting.md")
FENCE = re.compile(r"^```python[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
BLOCKS = [
    (page, text.count("\n", 0, match.start(1)), match[1])
    for page in PAGES
    for text in [(ROOT / page).read_text(encoding="utf-8")]
    for match in FENCE.finditer(text)
]


@pytest.fixture(scope="module")
def namespaces() -> dict[str, dict[str, Any]]:
    return {page: {"__name__": page} for page in PAGES}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("readme")


def test_every_page_has_code() -> None:
    assert {page for page, _, _ in BLOCKS} == set(PAGES)


@pytest.mark.parametrize(("page", "line", "code"), BLOCKS, ids=[f"{page}, line {line + 1}" for page, line, _ in BLOCKS])
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
    exec(compile("\n" * line + code, page, "exec"), namespaces[page])
