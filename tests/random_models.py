"""Small random models of every basis, every form and every kind of piecewise polynomial, and whether two are one."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

import unbraid as ub
from registry import BASES
from unbraid.bases import Basis
from unbraid.data.encoding import EncodedColumn, Encoding
from unbraid.kernels.pieces import Pieces
from unbraid.results.branch import Branch, FittedBranch
from unbraid.results.branches.forms import FORMS, Formula
from unbraid.results.branches.formula import FormulaBranch
from unbraid.results.branches.piecewise import PiecewiseBranch
from unbraid.results.files.description import describe

FITTED: tuple[Basis, ...] = (*BASES, ub.SmoothingSpline(), ub.SmoothingSpline(6, smoothing=0.25))
KINDS: tuple[object, ...] = (*FITTED, *FORMS, "pieces")
"""What branches are made of: a basis, the name of a form, or pieces."""
STRANGE_NAMES = ("speed", "load [N]", "λ", "", 'say "x"', "a\nb", "\u202eabc", "\ud800", "x" * 300, "\\input{x}")


def random_branch(kind: object, rng: np.random.Generator) -> Branch:
    """A branch of a kind, of any scale."""
    scale = 10.0 ** rng.integers(-3, 4)
    if isinstance(kind, Basis):
        reach = rng.integers(0, 2, 2) * np.round(rng.random(2) * 2.0**30) / 2.0**30
        placement = kind.place(scale * rng.standard_normal(40))
        return FittedBranch(kind, placement, rng.standard_normal(kind.size), reach)
    low, high = np.sort(scale * rng.standard_normal(2))
    domain = (float(low) if rng.random() < 0.8 else -np.inf, float(high) if rng.random() < 0.8 else np.inf)
    if isinstance(kind, str) and kind in FORMS:
        return FormulaBranch(Formula.of(kind, rng.standard_normal(FORMS[kind].count).tolist()), domain)
    count, degree = rng.integers(2, 7), rng.integers(1, 6)
    breaks = np.sort(scale * rng.standard_normal(count - 1))
    middle, rate = scale * rng.standard_normal(count), rng.exponential(size=count) / scale
    return PiecewiseBranch(Pieces(breaks, middle, rate, rng.standard_normal((degree + 1, count))), domain)


def random_model(seed: int) -> ub.DecoupledModel:
    """A model with one to four branches, with names and an encoding at times."""
    rng = np.random.default_rng(seed)
    r, m, n = rng.integers(1, 5), int(rng.integers(1, 4)), int(rng.integers(1, 4))
    branches = [random_branch(KINDS[rng.integers(len(KINDS))], rng) for _ in range(r)]
    W0, W1 = rng.standard_normal((r, m)), rng.standard_normal((n, r)) * 10.0 ** rng.integers(-9, 9, (n, r))
    W1[rng.random((n, r)) < 0.2] = -0.0
    model = ub.DecoupledModel(W0, W1, branches, rng.standard_normal(n))
    if rng.random() < 0.5:
        return model
    names = tuple(STRANGE_NAMES[k] for k in rng.integers(0, len(STRANGE_NAMES), m - 1))
    columns = (*map(EncodedColumn, names), EncodedColumn("fuel", ("petrol", "diesel")))
    outputs = tuple(STRANGE_NAMES[k] for k in rng.integers(0, len(STRANGE_NAMES), n))
    return model.changed(input_names=(*names, "fuel=diesel"), output_names=outputs, encoding=Encoding(columns))


random_models = st.integers(0, 2**32 - 1).map(random_model)


def assert_same(one: ub.DecoupledModel, other: ub.DecoupledModel) -> None:
    """Two models are the same to the last bit."""
    (metadata, arrays), (others, other_arrays) = describe(one), describe(other)
    assert metadata == others
    assert {name: array.tobytes() for name, array in arrays.items()} == {
        name: array.tobytes() for name, array in other_arrays.items()
    }
    assert [type(branch) for branch in one.branches] == [type(branch) for branch in other.branches]
    assert [branch.domain for branch in one.branches] == [branch.domain for branch in other.branches]
    X = np.random.default_rng(0).standard_normal((20, one.m))
    assert one(X).tobytes() == other(X).tobytes()
    assert one.jacobian(X).tobytes() == other.jacobian(X).tobytes()
