"""Names of inputs and outputs, and the samples that a fit remembers."""

import pickle
from typing import Any

import numpy as np
import pytest

import unbraid as ub


def test_names_of_a_data_frame_are_kept_and_given_ones_win() -> None:
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame({"speed": [1.0, 2.0, 3.0], "load": [3.0, 1.0, 2.0]})
    F = pandas.DataFrame({"force": [1.0, 0.0, 1.0]})
    problem = ub.Problem(X, F)
    assert (problem.input_names, problem.output_names) == (("speed", "load"), ("force",))
    assert problem.take([0, 2]).input_names == ("speed", "load")
    assert ub.Problem(X, F, input_names=["u", "v"]).input_names == ("u", "v")
    assert ub.Problem.from_function(lambda x: x[0] * x[1], X).input_names == ("speed", "load")
    assert ub.Problem(X.to_numpy(), F.to_numpy()).input_names is None


def test_samples_of_a_function_have_names_too() -> None:
    names: Any = {"input_names": ["u", "v"], "output_names": ["force", "heat"]}
    problem = ub.Problem.from_function(lambda x: [x[0], x[1] ** 2], np.eye(2), **names)
    assert (problem.input_names, problem.output_names) == (("u", "v"), ("force", "heat"))
    calls = [0]

    def f(x: Any) -> Any:
        calls[0] += 1
        return [x[0], x[1]]

    wrong: Any
    for wrong in ({"input_names": "uv"}, {"output_names": ["force"]}, {"output_names": 3}, {"output_names": "force"}):
        with pytest.raises(ub.UnbraidError, match=rf"{next(iter(wrong))} must be .* names"):
            ub.Problem.from_function(f, np.ones((50, 2)), **wrong)
    assert calls[0] < 30  # the samples are not called, to be lost


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (["a"], r"input_names must be 2 names, one a column, got 1\."),
        ("ab", "input_names must be a list of 2 names, got the single text 'ab'"),
        (["a", 3], "input_names must be texts, got 3 among them"),
    ],
)
def test_wrong_names_are_refused_with_a_sentence(names: list[str], sentence: str) -> None:
    with pytest.raises(ub.UnbraidError, match=sentence):
        ub.Problem(np.ones((3, 2)), np.ones(3), input_names=names)


def test_a_fit_remembers_its_problem_until_it_is_dropped() -> None:
    problem, _ = ub.datasets.trig(S=60, rng=0)
    fit = ub.decouple(problem, 3, starts=2, rng=0)
    assert fit.problem is problem
    dropped = fit.without_problem()
    assert dropped.problem is None
    assert len(pickle.dumps(dropped)) < len(pickle.dumps(fit))
    assert repr(ub.diagnose(dropped, problem)) == repr(ub.diagnose(fit))
    with pytest.raises(ub.UnbraidError, match="pass the problem that was fitted"):
        ub.diagnose(dropped)
