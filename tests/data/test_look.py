"""A look at samples: every finding has data with just that defect, and all are silent about data without any."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unbraid as ub
from unbraid.data.encoding import EncodedColumn, Encoding
from unbraid.data.looking.look import Look

S = 400
Change = Callable[[dict[str, Any]], None]


def good(seed: int = 0) -> dict[str, Any]:
    """Samples of a smooth function with its Jacobians: nothing is odd about them."""
    problem, _ = ub.datasets.random_system(2, 3, 2, S, "sine", rng=seed)
    return {"X": np.array(problem.X), "F": np.array(problem.F), "J": np.array(problem.J)}


def constant(arrays: dict[str, Any]) -> None:
    arrays["X"][:, 1] = 7.0


def constant_output(arrays: dict[str, Any]) -> None:
    arrays["F"][:, 0] = -2.0
    del arrays["J"]


def nearly_constant(arrays: dict[str, Any]) -> None:
    arrays["X"][3:, 1] = 7.0


def collinear(arrays: dict[str, Any]) -> None:
    X = arrays["X"]
    X[:, 2] = 2.0 * X[:, 0] - 0.5 * X[:, 1] + 3.0


def nearly_collinear(arrays: dict[str, Any]) -> None:
    collinear(arrays)
    arrays["X"][:, 2] += 1e-4 * np.random.default_rng(1).standard_normal(S)


def output_in_other_units(arrays: dict[str, Any]) -> None:
    arrays["F"][:, 1] = 1.8 * arrays["X"][:, 2] + 32.0


def rounded_output(arrays: dict[str, Any]) -> None:
    arrays["F"][:, 1] = np.round(1.8 * arrays["X"][:, 2] + 32.0, 1)


def duplicates(arrays: dict[str, Any]) -> None:
    for array in arrays.values():
        array[:5] = array[5:10]


def repeated(arrays: dict[str, Any]) -> None:
    arrays["X"][:50] = arrays["X"][50:100]


def outlier(arrays: dict[str, Any]) -> None:
    arrays["X"][17, 0] = 1e4


def outlying_output(arrays: dict[str, Any]) -> None:
    arrays["F"][17, 1] = -1e5
    del arrays["J"]


def tails(arrays: dict[str, Any]) -> None:
    arrays["X"][:, 0] = np.exp(3.0 * np.random.default_rng(2).standard_normal(S))


def discrete(arrays: dict[str, Any]) -> None:
    arrays["X"][:, 0] = np.arange(S) % 3


def missing(arrays: dict[str, Any]) -> None:
    arrays["F"][:7, 1] = np.nan


def wrong_sign(arrays: dict[str, Any]) -> None:
    arrays["J"] *= -1.0


def other_units(arrays: dict[str, Any]) -> None:
    arrays["J"][:, :, 1] *= 1000.0


DEFECTS: list[tuple[Change, str, str]] = [
    (constant, "constant", "x2 is 7 in all samples"),
    (constant_output, "constant", "output f1 is -2 in all samples"),
    (nearly_constant, "nearly constant", "x2 is 7 in all but 3 samples"),
    (collinear, "collinear", "is"),
    (nearly_collinear, "nearly collinear", "nearly"),
    (output_in_other_units, "output is an input", "f2 is 1.8 x3 + 32: a straight line"),
    (rounded_output, "output is an input", "f2 is nearly 1.8 x3 + 32"),
    (duplicates, "duplicates", "5 samples are exact copies"),
    (repeated, "repeated points", "50 points have several samples with different values"),
    (outlier, "outliers", "Input x1 has 1 value far from all others, the farthest 10000 in sample 17"),
    (outlying_output, "outliers", "Output f2 has 1 value far from all others, the farthest -100000 in sample 17"),
    (tails, "heavy tails", "Input x1 has long tails"),
    (discrete, "discrete", "x1 has only 3 different values, 0, 1, 2"),
    (missing, "missing", "7 values (by output: f2 7), in 7 samples of 400"),
    (wrong_sign, "contradiction", "J has the wrong sign"),
    (other_units, "contradiction", "J is not in the units of X and F"),
]


def looked_at(change: Change | None, jacobians: bool = True) -> Look:
    arrays = good()
    if change is not None:
        change(arrays)
    if not jacobians:
        arrays.pop("J", None)
    return ub.Problem(**arrays, missing="mask").look()


def test_nothing_is_odd_about_good_samples() -> None:
    for seed in range(20):
        assert not ub.Problem(**good(seed)).look().findings
    assert "Nothing is odd about them." in repr(ub.Problem(**good()).look())


@pytest.mark.parametrize(("change", "kind", "said"), DEFECTS, ids=lambda one: getattr(one, "__name__", None))
def test_a_defect_is_found_with_a_cure(change: Change, kind: str, said: str) -> None:
    about_slopes = kind == "contradiction"
    look = looked_at(change, jacobians=about_slopes)
    assert [one.kind for one in look] == [kind], look
    [finding] = look
    assert said in finding.said
    assert finding.said.endswith(".")
    assert finding.cure.endswith(".")
    assert str(finding) in " ".join(repr(look).split())


def test_the_combination_of_collinear_inputs_is_named() -> None:
    [finding] = looked_at(collinear, jacobians=False)
    names = {f"x{k}" for k in (1, 2, 3)}
    assert set(finding.columns) == names
    values = dict(zip(sorted(names), good()["X"].T, strict=True))
    values["x3"] = 2.0 * values["x1"] - 0.5 * values["x2"] + 3.0
    left, right = finding.said.removeprefix("The input ").split(": what belongs")[0].split(" is ")
    terms = right.replace("- ", "+ -").split(" + ")
    total = np.zeros(S)
    for term in terms:
        *number, name = term.split() if term.split()[-1].lstrip("-") in names else (term, "")
        sign = -1.0 if name.startswith("-") else 1.0
        size = float(number[0]) if number else 1.0
        total += sign * size * (values[name.lstrip("-")] if name else 1.0)
    np.testing.assert_allclose(total, values[left], rtol=1e-3, atol=1e-3)


def test_an_output_that_is_an_input_is_told_by_the_fit_and_whatever_its_size() -> None:
    arrays = good()
    output_in_other_units(arrays)
    for size in (1e-200, 1e200):
        look = ub.Problem(arrays["X"], size * arrays["F"][:, 1:]).look()
        assert f"f1 is {1.8 * size:.4g} x3 + " in look.of("output is an input")[0].said
    fit = ub.decouple(ub.Problem(arrays["X"], arrays["F"][:, 1:]), 1, starts=1, rng=0)
    assert any(note.startswith("The output f1 is 1.8 x3 + 32: ") for note in fit.notes)
    arrays["F"][50:], arrays["X"][:50, :2] = np.nan, 7.0  # where it is known, other inputs do not vary
    problem = ub.Problem(arrays["X"], arrays["F"][:, 1:], missing="mask")
    assert problem.look().of("output is an input")[0].columns == ("f1", "x3")


def test_lines_with_noise_and_steps_are_no_input_in_other_units() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(0.0, 1.0, (S, 2))
    for F in (X[:, 0] + 0.01 * rng.standard_normal(S), X[:, 0] > 0.5, np.sin(X[:, 0]), X @ [1.0, 0.01]):
        for count in (6, 12, S):
            assert not ub.Problem(X[:count], F[:count].astype(float)).look().of("output is an input")


def test_a_likely_mistake_comes_with_how_sure_it_is() -> None:
    """A factor that explains nearly all, and one that explains about half, are told in different words."""
    said = []
    for noise in (0.0, 0.8):
        arrays, rng = good(), np.random.default_rng(0)
        J = arrays["J"] + noise * arrays["J"].std() * rng.standard_normal(arrays["J"].shape)
        [finding] = ub.Problem(arrays["X"], arrays["F"], 10.0 * J).look()
        explained = re.search(r"So mended, J explains (\d+) % of .*; as it is, nothing\.", finding.said)
        assert explained, finding
        said.append(int(explained[1]))
    assert said[0] > 95
    assert 50 <= said[1] < 90


def test_too_few_samples_are_told() -> None:
    rng = np.random.default_rng(0)
    few = ub.Problem(rng.standard_normal((10, 8)), rng.standard_normal((10, 1)))
    assert [one.kind for one in few.look()] == ["few samples"]
    assert not ub.Problem(rng.standard_normal((100, 8)), rng.standard_normal((100, 1))).look().of("few samples")


def test_indicators_are_meant_to_have_two_values() -> None:
    arrays = good()
    arrays["X"][:, 1] = np.arange(S) % 2
    encoding = Encoding((EncodedColumn("a"), EncodedColumn("b", ("no", "yes")), EncodedColumn("c")))
    names = ["a", "b=yes", "c"]
    assert ub.Problem(arrays["X"], arrays["F"], input_names=names).look().of("discrete")
    assert not ub.Problem(arrays["X"], arrays["F"], input_names=names, encoding=encoding).look().of("discrete")


def test_findings_that_matter_are_notes_of_the_fit_and_constant_inputs_weigh_nothing() -> None:
    arrays = good()
    constant(arrays)
    problem = ub.Problem(arrays["X"], arrays["F"], input_names=["a", "b", "c"])
    fit = ub.decouple(problem, 2, starts=4, rng=0)
    assert any(note.startswith("The input b is 7 in all samples.") for note in fit.notes)
    np.testing.assert_array_equal(np.abs(fit.model.W0[:, 1]) < 1e-12, True)


@given(seed=st.integers(0, 1000))
def test_seeds_agree_on_what_collinear_inputs_leave_open(seed: int) -> None:
    """Directions in which samples do not differ have no part in W0, whatever a start began with."""
    X = np.random.default_rng(seed).uniform(-1.0, 1.0, (60, 3))
    X[:, 2] = X[:, 0] + X[:, 1]
    problem = ub.Problem(X, np.sin(X[:, :1] - 0.5 * X[:, 1:2]))
    one, other = (ub.decouple(problem, 1, starts=2, rng=k).model.W0[0] for k in range(2))
    np.testing.assert_allclose(one * np.sign(one @ other), other, atol=1e-2)
