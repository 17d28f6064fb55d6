"""What tests of reports share: a page taken apart, how one is written, and a fit with names that look like markup."""

from __future__ import annotations

from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import unbraid as ub
from unbraid.report import write_report

VOID = {"meta", "br", "link", "img", "input", "hr"}


class Page(HTMLParser):
    """A page taken apart: its text, its tags with their attributes, and whether tags are closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == [], f"not closed: {self.open}"

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("script", "style"):
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def having(self, attribute: str) -> list[str]:
        return [value or "" for _, attributes in self.tags for name, value in attributes.items() if name == attribute]


def written(fit: ub.Fit | ub.DecoupledModel, folder: Path, **settings: Any) -> str:
    write_report(fit, folder / "report.html", **settings)
    return (folder / "report.html").read_text(encoding="utf-8")


HOSTILE = (
    "<script>alert(1)</script>",
    '"onmouseover="alert(1)',
    "a & b",
    "cost in $ or $US$",
    "{{ 7 * 7 }}",
    "`x`",
    "</svg>",
)


@cache
def hostile_fit() -> ub.Fit:
    problem, _ = ub.datasets.random_system(n=7, m=7, r=2, S=60, kind="sine", rng=0)
    named = ub.Problem(problem.X, problem.F, problem.J, input_names=HOSTILE, output_names=HOSTILE[::-1])
    return ub.decouple(named, 2, starts=2, rng=0)
