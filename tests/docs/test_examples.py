"""The pages about examples show their code; test_site.py runs them."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_about_the_network_shows_the_code_of_the_example() -> None:
    page = (ROOT / "docs" / "network.md").read_text(encoding="utf-8")
    code = (ROOT / "examples" / "network.py").read_text(encoding="utf-8")
    shown = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert shown
    assert all(block in code for block in shown)
