"""The pages about examples show their code, which test_site.py runs; the picture of the README can be drawn."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_about_the_network_shows_the_code_of_the_example() -> None:
    page = (ROOT / "docs" / "network.md").read_text(encoding="utf-8")
    code = (ROOT / "examples" / "network.py").read_text(encoding="utf-8")
    shown = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert shown
    assert all(block in code for block in shown)


def test_the_picture_of_the_readme_is_drawn_by_its_program(tmp_path: Path) -> None:
    assert "](docs/decoupling.png)" in (ROOT / "README.md").read_text(encoding="utf-8")
    runpy.run_path(str(ROOT / "docs" / "picture.py"))["main"](tmp_path / "decoupling.png")
    assert (tmp_path / "decoupling.png").read_bytes().startswith(b"\x89PNG")
