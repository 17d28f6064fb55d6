"""Links between pages work where they are read: on a code host, and on the site."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [path.relative_to(ROOT).as_posix() for path in (*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/*.md")))]
LINK = re.compile(r"\]\(([^)\s]+)\)")


def prose(page: Path) -> str:
    """The text without its code."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]*`", "`code`", text)


def anchors(page: Path) -> set[str]:
    """What headings are called in addresses."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES)
def test_links_inside_the_repository_lead_somewhere(page: str) -> None:
    here = ROOT / page
    for link in LINK.findall(prose(here)):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (here.parent / path).resolve() if path else here
        assert target.exists(), f"{page} links to {link}"
        assert target.is_relative_to(ROOT), f"{page} links to {link}, outside the repository"
        if anchor:
            assert anchor in anchors(target), f"{page} links to {link}, which has no such heading"


def test_there_are_links_to_check() -> None:
    assert sum(len(LINK.findall(prose(ROOT / page))) for page in PAGES) > 30


@pytest.mark.parametrize("page", [page for page in PAGES if page != "CHANGELOG.md"])
def test_files_that_a_page_names_exist(page: str) -> None:
    """`kernels/splines.py` is a file of the package, `benchmarks/sweeps.py` one of the repository."""
    for path in re.findall(r"`(?:python )?([a-z_/0-9]+/\w+\.py)\b", (ROOT / page).read_text(encoding="utf-8")):
        places = (ROOT, ROOT / "src", ROOT / "src" / "unbraid")
        assert any((place / path).exists() for place in places), f"{page} names {path}"
