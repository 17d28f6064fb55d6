"""A fit of f_trig and its page."""

from __future__ import annotations

from pathlib import Path

import pytest

import unbraid as ub


@pytest.fixture(scope="session")
def found() -> tuple[ub.Fit, ub.DecoupledModel]:
    problem, truth = ub.datasets.trig(S=100, rng=0)
    return ub.decouple(problem, 3, basis=ub.BSpline(df=16), starts=6, rng=0), truth


@pytest.fixture(scope="session")
def page_file(found: tuple[ub.Fit, ub.DecoupledModel], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    found[0].report(path, truth=found[1])
    return path


@pytest.fixture(scope="session")
def page(page_file: Path) -> str:
    return page_file.read_text(encoding="utf-8")
