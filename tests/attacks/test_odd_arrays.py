"""What people pass for an array, a path or a callback: taken, or refused with the argument's name and the cure."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
import torch
from sklearn.base import clone

import unbraid as ub

X = np.random.default_rng(0).uniform(-1, 1, (20, 2))
DAYS = pd.date_range("2024-01-01", periods=20)
ODD: dict[str, tuple[Callable[[], Any], str]] = {
    "nullable with a gap": (lambda: pd.DataFrame({"a": pd.array([1, None] * 10, "Int64"), "b": X[:, 1]}), "NaN|shape"),
    "dates": (lambda: pd.DataFrame({"t": DAYS}), "seconds since the first"),
    "dates among numbers": (lambda: pd.DataFrame({"t": DAYS, "b": X[:, 1]}), r"t'\] .*seconds since the first"),
    "dates with a zone": (lambda: pd.DataFrame({"t": DAYS.tz_localize("UTC")}), r"t'\] .*seconds since the first"),
    "durations": (lambda: pd.DataFrame({"t": DAYS - DAYS[0], "b": X[:, 1]}), r"t'\] .*seconds since the first"),
    "text in a frame": (lambda: pd.DataFrame({"a": X[:, 0], "b": ["x", "y"] * 10}), r"b'\] .*encode texts as numbers"),
    "categories": (lambda: pd.DataFrame({"b": pd.Categorical(["x", "y"] * 10)}), r"b'\] .*encode texts as numbers"),
    "mixed": (lambda: pd.DataFrame({"a": X[:, 0], "b": ["x", 1] * 10}), r"b'\] .*encode texts as numbers"),
    "complex in a frame": (lambda: pd.DataFrame({"a": X[:, 0], "b": X[:, 1] + 1j}), r"b'\] must be real"),
    "columns of one name": (lambda: pd.DataFrame(X, columns=["a", "a"]), "has 2 columns named 'a': rename them"),
    "no rows": (lambda: pd.DataFrame({"a": []}), "empty"),
    "text in polars": (lambda: pl.DataFrame({"a": X[:, 0], "b": ["x", "y"] * 10}), r"b'\] .*encode texts as numbers"),
    "structs of polars": (lambda: pl.DataFrame({"a": [{"q": 1}] * 20}), r"a'\] must hold one number"),
    "a lazy frame": (lambda: pl.DataFrame({"a": X[:, 0]}).lazy(), r"collect\(\)"),
    "dates of polars": (lambda: pl.DataFrame({"t": [date(2024, 1, 1)] * 20}), r"t'\] .*seconds since the first"),
    "durations of polars": (
        lambda: pl.DataFrame({"a": X[:, 0], "t": [timedelta(k) for k in range(20)]}),
        r"t'\] .*seconds since the first",
    ),
    "gradients": (lambda: torch.tensor(X, requires_grad=True), "requiring gradients.*detach"),
    "bfloat16": (lambda: torch.tensor(X).to(torch.bfloat16), "bfloat16.*float64"),
    "a sparse tensor": (lambda: torch.tensor(X).to_sparse(), "to_dense"),
    "a meta tensor": (lambda: torch.empty((20, 2), device="meta"), "meta"),
    "a sparse array": (lambda: scipy.sparse.csr_array(X), "toarray"),
    "huge integers": (lambda: [[10**400, 1]] * 20, "beyond 1e308"),
    "float16 that overflowed": (lambda: np.full((20, 2), np.inf, np.float16), "infinite|shape"),
    "masked": (lambda: np.ma.masked_less(X, 0.0), "masked"),
    "text": (lambda: np.array([["1", "2"]] * 20), "dtype"),
    "text among objects": (lambda: np.array([["1", 2]] * 20, dtype=object), "str"),
    "ragged": (lambda: [[1.0], [1.0, 2.0]] * 10, "equally long"),
    "complex": (lambda: X + 1j, "real"),
    "a structured array": (lambda: np.zeros(20, dtype=[("a", float), ("b", float)]), "dtype"),
    "a function": (lambda: np.sin, "ufunc"),
    "a generator": (lambda: (row for row in X), "generator"),
    "a dictionary": (lambda: {"a": 1}, "dict"),
    "a number": (lambda: 3.0, "single number"),
    "nothing": (lambda: np.zeros((0, 2)), "empty"),
}


@pytest.mark.parametrize("argument", ["X", "F", "J", "weights"])
@pytest.mark.parametrize("kind", ODD)
def test_odd_arrays_are_refused_by_name_with_a_cure(kind: str, argument: str) -> None:
    make, said = ODD[kind]
    given = {"X": X, "F": X, argument: make()}
    with pytest.raises(ub.UnbraidError, match=f"(?s)^{argument}[ [].*({said})") as refused:
        ub.Problem(**given)
    assert len(str(refused.value)) < 400


@pytest.mark.parametrize("kind", ODD)
def test_the_regressor_refuses_them_by_name_with_the_same_cure(kind: str) -> None:
    make, said = ODD[kind]
    sklearn = "0 sample|Complex data"  # which it has words of its own for, and checks them
    fitted = ub.DecouplingRegressor(rank=1, starts=1, df=4).fit(X, X)
    for argument, use in (
        ("X", lambda: clone(fitted).fit(make(), X)),
        ("y", lambda: clone(fitted).fit(X, make())),
        ("X", lambda: fitted.predict(make())),
    ):
        with pytest.raises(ValueError, match=f"(?s)^{argument}[ [].*({said})|{sklearn}") as refused:
            use()
        assert isinstance(refused.value, ub.UnbraidError) or kind in ("complex", "nothing")


@pytest.mark.parametrize(
    "make",
    [
        lambda: pd.DataFrame(X).convert_dtypes(),
        lambda: pl.DataFrame(X),
        lambda: torch.tensor(X),
        lambda: np.ma.masked_array(X),
        lambda: X.astype(np.float16),
        lambda: X.tolist(),
        lambda: np.array(X, dtype=object),
    ],
)
def test_usual_ones_are_taken(make: Callable[[], Any]) -> None:
    np.testing.assert_allclose(ub.Problem(make(), X).X, X, atol=1e-3)


PROBLEM, _ = ub.datasets.trig(S=30, rng=0)
FIT = ub.decouple(PROBLEM, 1, starts=1, rng=0, basis=ub.BSpline(df=4))
WRONG: dict[str, Callable[[Any], object]] = {
    "path of save": FIT.model.save,
    "path of load": ub.DecoupledModel.load,
    "path of report": FIT.report,
    "checkpoint": lambda given: ub.decouple(PROBLEM, 1, starts=1, checkpoint=given),
    "checkpoint of select": lambda given: ub.select(PROBLEM, ranks=[1, 2], starts=1, checkpoint=given),
    "callback": lambda given: ub.decouple(PROBLEM, 1, starts=1, callback=given),
    "callback of select": lambda given: ub.select(PROBLEM, ranks=[1, 2], starts=1, callback=given),
}


@pytest.mark.parametrize("argument", WRONG)
def test_an_array_is_neither_a_path_nor_a_callback(argument: str) -> None:
    with pytest.raises(ub.UnbraidError, match=f"{argument.split()[0]} must be") as refused:
        WRONG[argument](np.arange(10_000.0))
    assert len(str(refused.value)) < 300


def test_a_path_that_no_system_has_is_refused() -> None:
    for path in ("a\0b", "x" * 5000):
        for act in (FIT.model.save, ub.DecoupledModel.load, FIT.report):
            with pytest.raises(ub.UnbraidError):
                act(path)
