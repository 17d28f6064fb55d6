"""The scikit-learn regressor: the estimator checks, what it adds to them, and that it adds no numerics."""

from __future__ import annotations

import copy
import io
import pickle
import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import cloudpickle
import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from skops import io as skops

import unbraid as ub
from unbraid.dynamics.models.base import SimulationStatus
from unbraid.estimator import DecouplingRegressor, basis_of, in_fixed_order
from unbraid.kernels.arrays import Array
from unbraid.results.outcome import EventKind, Status

PROBLEM, TRUTH = ub.datasets.trig(S=60, rng=0)
X, Y, J = PROBLEM.X, np.array(PROBLEM.F), np.array(PROBLEM.J)


def small(**settings: Any) -> DecouplingRegressor:
    return DecouplingRegressor(**{"rank": 2, "starts": 2, "random_state": 0} | settings)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # checks fit noise
@parametrize_with_checks([DecouplingRegressor(rank=1, starts=1)])  # type: ignore[untyped-decorator]
def test_estimator_check(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


# What comes out


def test_it_is_decouple_on_the_distinct_samples() -> None:
    order = in_fixed_order(X, Y, J)
    problem = ub.Problem(X[order], Y[order], J[order])
    regressor = DecouplingRegressor(rank=3, df=9, starts=2, random_state=5).fit(X, Y, jac=J)
    seed = int(np.random.RandomState(5).randint(2**31 - 1))
    fit = ub.decouple(problem, 3, basis=ub.BSpline(df=9), starts=2, rng=seed)
    np.testing.assert_array_equal(regressor.predict(X), fit.model(X))
    assert regressor.fit_.model is regressor.model_


@pytest.mark.parametrize("jac", [None, J])
def test_outputs_have_the_shape_of_y(jac: Array | None) -> None:
    several = small().fit(X, Y, jac=jac)
    column = small().fit(X, Y[:, :1], jac=None if jac is None else jac[:, :1])
    single = small().fit(X, Y[:, 0], jac=None if jac is None else jac[:, 0])
    assert several.predict(X).shape == (60, 2)
    assert several.jacobian(X).shape == (60, 2, 2)
    assert column.predict(X).shape == (60, 1)
    assert column.jacobian(X).shape == (60, 1, 2)
    assert single.predict(X).shape == (60,)
    assert single.jacobian(X).shape == (60, 2)
    np.testing.assert_array_equal(single.predict(X), column.predict(X)[:, 0])
    np.testing.assert_array_equal(single.jacobian(X), column.jacobian(X)[:, 0])


def test_jacobians_recover_the_paper_system() -> None:
    fresh, _ = ub.datasets.trig(S=500, rng=1)
    regressor = DecouplingRegressor(rank=3, random_state=0).fit(X, Y, jac=J)
    assert regressor.score(fresh.X, fresh.F) > 0.999
    assert ub.metrics.jacobian_error(np.array(fresh.J), regressor.jacobian(fresh.X)) < 0.01


def test_constraints_are_certified() -> None:
    regressor = small(constraint=ub.Increasing()).fit(X, Y)
    assert all(branch.certified(ub.Increasing()) for branch in regressor.model_.branches)


def test_the_continuation_is_passed_on() -> None:
    straight = small(continuation="linear").fit(X, Y)
    assert not any(branch.reach.any() for branch in straight.model_.branches)  # type: ignore[attr-defined]
    assert straight.get_params()["continuation"] == "linear"
    with pytest.raises(ub.UnbraidError, match="continuation must be"):
        small(continuation="cubic").fit(X, Y)


# Weights


def test_a_weight_is_a_number_of_copies_also_with_jacobians() -> None:
    weights = np.arange(60) % 4
    weighted = small().fit(X, Y, jac=J, sample_weight=weights)
    repeated = small().fit(X.repeat(weights, axis=0), Y.repeat(weights, axis=0), jac=J.repeat(weights, axis=0))
    np.testing.assert_array_equal(weighted.predict(X), repeated.predict(X))


def test_the_order_of_samples_does_not_matter() -> None:
    order = np.random.default_rng(0).permutation(60)
    np.testing.assert_array_equal(small().fit(X, Y).predict(X), small().fit(X[order], Y[order]).predict(X))


def test_equal_weights_are_no_weights() -> None:
    same = small().fit(X, Y, sample_weight=np.full(60, 0.3))
    np.testing.assert_array_equal(same.predict(X), small().fit(X, Y).predict(X))


# Settings


@pytest.mark.parametrize(
    ("S", "df", "basis"),
    [(60, 7, ub.BSpline(df=7)), (60, 2, ub.BSpline(df=2, degree=2)), (10, 20, ub.BSpline(df=9))],
)
def test_df_suits_the_samples(S: int, df: int, basis: Any) -> None:
    assert basis_of(ub.Problem(X[:S], Y[:S]), df) == basis


@pytest.mark.parametrize("S", [2, 3, 5, 8, 20, 60])
def test_it_needs_no_parameter(S: int) -> None:
    regressor = DecouplingRegressor(random_state=0).fit(X[:S], Y[:S, 0])
    assert regressor.rank_ <= regressor.model_.rank
    assert np.isfinite(regressor.predict(X)).all()


def test_without_a_parameter_it_finds_the_rank_of_noisy_samples() -> None:
    found = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        points = rng.uniform(-1, 1, (200, 3))
        values = np.sin(3 * points[:, 0] + points[:, 1]) + (points[:, 1] - points[:, 2]) ** 2
        noisy = values + 0.05 * rng.standard_normal(200)
        regressor = DecouplingRegressor(starts=6, random_state=0).fit(points[:150], noisy[:150])
        found.append(regressor.rank_)
        assert regressor.score(points[150:], values[150:]) > 0.98
    assert np.median(found) == 2


@pytest.mark.usefixtures("no_formulas")
def test_it_reports_on_samples_that_were_kept_or_are_given(tmp_path: Path) -> None:
    forgetful, mindful = (small(keep_samples=kept).fit(X, Y, jac=J) for kept in (False, True))
    assert forgetful.fit_.problem is None
    assert mindful.fit_.problem is not None
    assert len(X) == mindful.fit_.problem.S
    with pytest.raises(ub.UnbraidError, match="keep_samples=True"):
        forgetful.report(tmp_path / "a.html")
    forgetful.report(tmp_path / "b.html", X, Y, J)
    mindful.report(tmp_path / "c.html")
    assert "<html" in (tmp_path / "b.html").read_text()
    assert "<html" in (tmp_path / "c.html").read_text()


def test_warnings_name_the_parameters_of_the_regressor() -> None:
    method = ub.methods.default(max_seconds=1e-9)
    with pytest.warns(ConvergenceWarning, match="max_seconds"):
        small(method=method).fit(X, Y, jac=J)


def test_a_basis_is_taken_as_it_is_and_a_method_has_its_own() -> None:
    assert small(basis=ub.NaturalCubic(df=5), df=9).fit(X, Y).fit_.basis == ub.NaturalCubic(df=5)
    method = ub.methods.zniyed2021(max_sweeps=5)
    with pytest.warns(ConvergenceWarning, match="budget ran out"):
        regressor = small(method=method).fit(X, Y, jac=J)
    assert regressor.fit_.basis == method.basis
    with pytest.raises(ub.UnbraidError, match="too few"):
        small(basis=ub.BSpline(df=70)).fit(X, Y)


def test_the_same_random_state_gives_the_same_model() -> None:
    one, two = (small(random_state=np.random.RandomState(1)).fit(X, Y).predict(X) for _ in range(2))
    np.testing.assert_array_equal(one, two)
    np.random.seed(0)  # noqa: NPY002, what scikit-learn's None listens to
    one = small(random_state=None).fit(X, Y).predict(X)
    np.random.seed(0)  # noqa: NPY002
    np.testing.assert_array_equal(small(random_state=None).fit(X, Y).predict(X), one)


def test_rank_is_what_decouple_makes_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    ranks = []

    def noted(problem: ub.Problem, rank: Any, **settings: Any) -> ub.Fit:
        ranks.append(rank)
        return ub.decouple(problem, 1, **settings)

    monkeypatch.setattr("unbraid.estimator.decouple", noted)
    small(rank="auto").fit(X, Y)
    assert ranks == ["auto"]


@pytest.mark.parametrize(
    ("settings", "data", "message"),
    [
        ({"rank": 0}, {}, "rank must be"),
        ({"df": 0}, {}, "df must be a whole number"),
        ({"df": 4.5}, {}, "df must be a whole number"),
        ({"random_state": "seed"}, {}, "seed"),
        ({}, {"jac": J.mT[:, :, :1]}, "jac must be .* Its last two axes look swapped"),
        ({}, {"jac": J[:50]}, "jac must be"),
        ({}, {"jac": np.where(J.max() - 1e-9 < J, np.nan, J)}, "jac has 1 entry that is NaN"),
        ({}, {"sample_weight": np.zeros(60)}, "zero"),
        ({}, {"sample_weight": np.eye(60)[0]}, "only 1 distinct sample"),
        ({}, {"sample_weight": -np.ones(60)}, "Negative values"),
    ],
)
def test_misuse_is_refused(settings: dict[str, Any], data: dict[str, Any], message: str) -> None:
    y = Y[:, 0] if "swapped" in message else Y
    with pytest.raises(ValueError, match=message):
        small(**settings).fit(X, y, **data)


def test_deviations_that_so_few_samples_cannot_tell_come_with_a_warning() -> None:
    rng = np.random.default_rng(0)
    few, noise = rng.uniform(-1, 1, (20, 19)), rng.normal(size=20)
    regressor = DecouplingRegressor(random_state=0).fit(few, noise)
    with pytest.warns(UserWarning, match="degrees of freedom"):
        regressor.predict(few, return_std=True)
    assert "do not tell" in " ".join(regressor.fit_.notes)


# With the rest of scikit-learn


def test_clone_copy_and_pickle() -> None:
    regressor = small(basis=ub.SmoothingSpline(), constraint=[ub.Convex(), None], method=ub.methods.default())
    assert clone(regressor).get_params() == regressor.get_params()
    regressor.fit(X, Y, jac=J)
    kept = io.BytesIO()
    joblib.dump(regressor, kept)
    dumped = [pickle.dumps(regressor), cloudpickle.dumps(regressor)]
    for again in (*map(pickle.loads, dumped), joblib.load(kept), copy.deepcopy(regressor)):
        check_same(again, regressor)


def check_same(again: DecouplingRegressor, regressor: DecouplingRegressor) -> None:
    """One that came back predicts what it did before, to the last bit, and knows as much of its fit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # whether its intervals are to be trusted
        np.testing.assert_array_equal(again.predict(X, return_std=True), regressor.predict(X, return_std=True))
    np.testing.assert_array_equal(again.jacobian(X), regressor.jacobian(X))
    assert repr(again.fit_) == repr(regressor.fit_)


def test_skops_brings_it_back() -> None:
    regressor = small(basis=ub.SmoothingSpline(), method=ub.methods.default(), keep_samples=True).fit(X, Y, jac=J)
    dumped = skops.dumps(regressor)
    types = skops.get_untrusted_types(data=dumped)
    assert all(name.startswith("unbraid.") for name in types)
    check_same(skops.loads(dumped, trusted=types), regressor)


def test_members_of_enumerations_are_made_by_their_class_of_their_value() -> None:
    """What skops asks of them; without it it calls `Enum.__new__` with nothing."""
    for member in (*Status, *EventKind, *SimulationStatus):
        kind, arguments = member.__reduce__()
        assert kind is type(member)
        assert kind(*arguments) is member
        assert all(copy.deepcopy(one) is member for one in (member, pickle.loads(pickle.dumps(member))))


def test_grid_search_over_rank_and_df_splits_jacobians_and_weights() -> None:
    search = GridSearchCV(small(), {"rank": [1, 3], "df": [6, 10]}, cv=2)
    search.fit(X, Y, jac=J, sample_weight=np.ones(60))
    assert search.best_params_["rank"] == 3
    assert search.predict(X).shape == (60, 2)


def test_metadata_routing_reaches_fit() -> None:
    with sklearn.config_context(enable_metadata_routing=True):
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        regressor = small().set_fit_request(jac=True, sample_weight=True).set_score_request(sample_weight=True)
        pipeline = make_pipeline(scaler, regressor)
        slopes = J * X.std(axis=0)  # with respect to what the scaler gives
        scores = cross_validate(pipeline, X, Y, cv=2, params={"jac": slopes, "sample_weight": np.ones(60)})
        pipeline.fit(X, Y, jac=slopes)
    assert len(scores["test_score"]) == 2
    assert pipeline[-1].fit_.jacobian_error is not None


def test_data_frames_give_names() -> None:
    frame, target = pd.DataFrame(X, columns=["speed", "load"]), pd.DataFrame(Y, columns=["a", "b"])
    regressor = small().fit(frame, target)
    assert list(regressor.feature_names_in_) == ["speed", "load"]
    np.testing.assert_array_equal(regressor.predict(frame), small().fit(X, Y).predict(X))
    with pytest.raises(ValueError, match="feature names"):
        regressor.predict(frame[["load", "speed"]])
    with pytest.warns(UserWarning, match="feature names"):
        regressor.predict(X)


def test_a_fit_that_did_not_converge_warns_with_advice() -> None:
    with pytest.warns(ConvergenceWarning, match="max_sweeps"):
        small(method=ub.methods.dejonghe2025(max_sweeps=2)).fit(X, Y, jac=J)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        small().fit(X, Y)


def test_ctrl_c_ends_a_grid_search_and_leaves_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    fit = replace(ub.decouple(ub.Problem(X, Y), 1, starts=1, rng=0), status=ub.Status.INTERRUPTED)
    monkeypatch.setattr("unbraid.estimator.decouple", lambda *_, **__: fit)
    with pytest.raises(KeyboardInterrupt):
        GridSearchCV(small(), {"rank": [1, 2]}, cv=2).fit(X, Y)
    regressor = small()
    with pytest.raises(KeyboardInterrupt):
        regressor.fit(X, Y)
    np.testing.assert_array_equal(regressor.predict(X), fit.model(X))


# Importing


def test_the_name_is_there_before_scikit_learn_is_imported() -> None:
    assert "DecouplingRegressor" in dir(ub)
    assert ub.DecouplingRegressor is DecouplingRegressor
    with pytest.raises(AttributeError, match="no attribute 'Regressor'"):
        getattr(ub, "Regressor")  # noqa: B009


def test_without_scikit_learn_a_sentence_says_what_to_install() -> None:
    code = """
import sys
sys.modules["sklearn"] = None
from unbraid import *
import unbraid as ub
try:
    ub.DecouplingRegressor
except ub.UnbraidError as error:
    print(isinstance(error, ImportError), error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("True ")
    assert 'pip install -e ".[sklearn]"' in done.stdout


def test_values_and_jacobians_that_contradict_each_other_are_warned_of() -> None:
    problem, _ = ub.datasets.trig(S=60, rng=0)
    with pytest.warns(UserWarning, match="y and jac contradict each other.*wrong sign"):
        ub.DecouplingRegressor(rank=3, starts=2, random_state=0).fit(problem.X, problem.F, jac=-np.asarray(problem.J))


def test_feature_importances_are_the_total_indices_over_their_sum() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (200, 3))
    y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] ** 2
    regressor = ub.DecouplingRegressor(rank=2, starts=4, random_state=0)
    assert not hasattr(regressor, "feature_importances_")
    regressor.fit(X, y)
    found = regressor.feature_importances_
    problem = ub.Problem(X, y)
    np.testing.assert_allclose(found, ub.importance(regressor.model_, problem).overall, atol=0.01)
    assert found.sum() == pytest.approx(1.0)
    assert found.argsort().tolist() == [2, 1, 0]
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(regressor)).feature_importances_, found)
