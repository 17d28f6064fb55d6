"""The examples run as a reader would run them, and do what their pages say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "network.py"
PAGE = (ROOT / "docs" / "network.md").read_text(encoding="utf-8")


def fenced(language: str) -> list[str]:
    """The blocks of the page in that language."""
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_the_page_shows_the_code_of_the_example() -> None:
    code = EXAMPLE.read_text(encoding="utf-8")
    assert fenced("python")
    assert all(block in code for block in fenced("python"))


def test_a_decoupled_network_loses_at_most_one_point_of_accuracy() -> None:
    done = subprocess.run([sys.executable, str(EXAMPLE)], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    printed = [line for line in done.stdout.splitlines() if "right" in line]
    right = {line.split()[0]: float(line.split()[1]) for line in printed}
    assert right["network"] > 95.0
    assert right["decoupled"] >= right["network"] - 1.0
    (shown,) = fenced("text")
    assert re.sub(r"[\d.]+", "#", shown).splitlines() == [re.sub(r"[\d.]+", "#", line) for line in printed]
