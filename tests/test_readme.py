"""The code of the README and of the guides runs, block after block, as a reader would type it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "docs/functions.md", "docs/report.md", "docs/selecting.md", "docs/sklearn.md")
FENCE = re.compile(r"^```python[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES)
def test_page_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One test a page: blocks need those before them, and tests may be spread over processes."""
    text = (ROOT / page).read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    names: dict[str, Any] = {"__name__": "page"}
    blocks = list(FENCE.finditer(text))
    assert blocks
    for block in blocks:
        line = text.count("\n", 0, block.start(1))  # so that a traceback has the page's line
        exec(compile("\n" * line + block[1], page, "exec"), names)
