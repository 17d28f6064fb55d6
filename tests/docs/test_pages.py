"""The code of the README and of the guides runs as a reader would type it, and prints what they show."""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
ELSEWHERE = {
    "docs/files.md": "test_reading.py",  # its blocks need its last one
    "docs/network.md": "test_examples.py",  # shows parts of an example
}
EXTRAS = ["matplotlib", "jinja2", "sklearn", "torch", "jax", "h5py", "pyarrow", "onnx", "sympy", "dask", "pandas"]
"""What the plain installation does not bring."""
BLOCK = re.compile(r"^```python[^\n]*\n(.*?)^```(?:\s*^```text\n(.*?)^```)?", re.MULTILINE | re.DOTALL)
"""Python code, and what it prints where that follows at once."""
PAGES = [
    name
    for path in (ROOT / "README.md", *sorted(ROOT.glob("docs/*.md")))
    if "```python" in path.read_text(encoding="utf-8") and (name := path.relative_to(ROOT).as_posix()) not in ELSEWHERE
]


@pytest.mark.parametrize("page", PAGES)
def test_page_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One test a page: blocks need those before them, and tests may be spread over processes."""
    text = (ROOT / page).read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    names: dict[str, Any] = {"__name__": "page"}
    for block in BLOCK.finditer(text):
        line = text.count("\n", 0, block.start(1))  # so that a traceback has the page's line
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("\n" * line + block[1], page, "exec"), names)
        if block[2] is not None:
            assert words(printed.getvalue()) == words(block[2])


def test_the_code_of_the_readme_needs_no_extra(tmp_path: Path) -> None:
    code = BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8"))[0][0]
    without = f"import sys; sys.modules.update(dict.fromkeys({EXTRAS}))\n"
    done = subprocess.run([sys.executable, "-c", without + code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Fit of rank 2")


def words(printed: str) -> list[str]:
    """What was printed, without its digits: times, rounding, and signs of what is 0 differ from machine to machine."""
    numbers = re.sub(r"-?\d[\d.,]*(e[+-]?\d+)?", "#", printed)
    return re.sub(r"([\[\]])", r" \1 ", numbers).split()


@pytest.mark.parametrize("page", [page for page in PAGES if "```text" in (ROOT / page).read_text(encoding="utf-8")])
def test_every_output_on_a_page_follows_the_code_that_prints_it(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert text.count("```text") == sum(block[2] is not None for block in BLOCK.finditer(text))


def test_pages_tested_elsewhere_exist() -> None:
    for page, test in ELSEWHERE.items():
        assert (ROOT / page).exists()
        assert Path(page).name in (Path(__file__).parent / test).read_text(encoding="utf-8")
