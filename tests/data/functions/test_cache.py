"""A file of calls: what was computed is not computed again, whatever happened to the process or the file."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import killed_calls
import unbraid as ub
from plain_functions import X, arrays, of_a_batch, of_both
from unbraid.errors import FileError
from unbraid.kernels.arrays import Array
from unbraid.runtime.call_file import FIRST_LINE, CallFile
from unbraid.runtime.progress import Progress

SIDES: list[Any] = [None, "forward", "central", "differences"]


class Counted:
    """A function of a point that remembers what it was called with, and may fail at the k-th call."""

    def __init__(self, fails: int = 0, error: type[BaseException] = RuntimeError) -> None:
        self.calls: list[bytes] = []
        self.fails, self.error = fails, error

    def __call__(self, x: Array) -> Array:
        if len(self.calls) + 1 == self.fails:
            raise self.error("enough")
        self.calls.append(x.tobytes())
        return np.array([np.sin(x[0] + 2 * x[1]), x[0] * x[1]])


def sampled(f: Any, cache: Path, **more: Any) -> ub.Problem:
    return ub.Problem.from_function(f, X, **{"derivatives": "forward", "cache": cache, **more})


def test_a_second_run_makes_no_call_and_gives_the_same(tmp_path: Path) -> None:
    for derivatives in SIDES:
        path, first, second = tmp_path / f"{derivatives}.npz", Counted(), Counted()
        one = sampled(first, path, derivatives=derivatives)
        two = sampled(second, path, derivatives=derivatives)
        assert second.calls == []
        np.testing.assert_array_equal(one.F, two.F)
        if derivatives is not None:
            np.testing.assert_array_equal(arrays(one)[1], arrays(two)[1])
        assert sorted(tmp_path.iterdir()) == sorted(tmp_path.glob("*.npz"))


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("derivatives", SIDES)
def test_what_was_computed_before_an_error_or_ctrl_c_is_not_computed_again(
    tmp_path: Path, derivatives: Any, error: type[BaseException]
) -> None:
    first, second = Counted(25, error), Counted()
    with pytest.raises((ub.UnbraidError, UserWarning, error)):
        sampled(first, tmp_path / "calls", derivatives=derivatives)
    assert len(first.calls) == 24
    sampled(second, tmp_path / "calls", derivatives=derivatives)
    points = [one for one in (*first.calls, *second.calls) if len(one) == 16]
    assert len(points) == len(set(points))


@pytest.mark.parametrize("f", [of_a_batch, of_both])
def test_functions_of_a_batch_are_kept_too(tmp_path: Path, f: Callable[[Array], Array]) -> None:
    calls = [0]

    def counted(x: Array) -> Array:
        calls[0] += 1
        return f(x)

    one = sampled(counted, tmp_path / "calls")
    before = calls[0]
    two = sampled(counted, tmp_path / "calls")
    assert calls[0] == before
    np.testing.assert_array_equal(arrays(one)[1], arrays(two)[1])
    more = ub.Problem.from_function(counted, np.concatenate([X, X + 1.0]), derivatives=None, cache=tmp_path / "calls")
    assert calls[0] == before + 1
    np.testing.assert_allclose(more.F, f(np.concatenate([X, X + 1.0])), rtol=1e-14)  # type: ignore[arg-type]


def test_further_points_and_other_derivatives_use_what_is_there(tmp_path: Path) -> None:
    f = Counted()
    sampled(f, tmp_path / "calls", derivatives=None)
    before = len(f.calls)
    sampled(f, tmp_path / "calls", derivatives="forward")
    assert len(f.calls) - before == 2 * len(X) + 3  # which are compared with longer steps
    sampled(f, tmp_path / "calls", derivatives="forward")
    assert len(f.calls) - before == 2 * len(X) + 3  # which are compared with longer steps


def test_the_file_is_an_npz_that_anybody_can_read(tmp_path: Path) -> None:
    sampled(Counted(), tmp_path / "calls.npz", derivatives=None)
    with np.load(tmp_path / "calls.npz") as file:
        assert set(file) == {"calls", "X", "F"}
        assert {x.tobytes() for x in X} <= {x.tobytes() for x in file["X"]}
        np.testing.assert_array_equal(file["F"], [Counted()(x) for x in file["X"]])


def test_single_precision_stays_single_precision(tmp_path: Path) -> None:
    """Steps are longer there, also in a run that goes on."""

    def f(x: Array) -> Any:
        return np.float32(np.sin(x))

    one, two = (arrays(sampled(f, tmp_path / "calls"))[1] for _ in range(2))
    np.testing.assert_array_equal(one, two)
    np.testing.assert_allclose(np.diagonal(one, axis1=1, axis2=2), np.cos(X), atol=1e-2)


def test_progress_goes_on_where_it_was(tmp_path: Path) -> None:
    seen: list[Progress] = []
    sampled(Counted(), tmp_path / "calls")
    sampled(Counted(), tmp_path / "calls", callback=seen.append)
    assert [(one.done, one.total) for one in seen] == [(0, 120), (120, 120)]


def test_what_is_not_finite_is_asked_for_again(tmp_path: Path) -> None:
    """The function may have been repaired there."""

    def f(x: Array, repaired: bool) -> Array:
        return np.full(2, np.nan) if x[0] == X[7, 0] and not repaired else x**2

    with pytest.warns(UserWarning, match=r"f gave nan at X\[7\]"):
        sampled(lambda x: f(x, False), tmp_path / "calls")
    problem = sampled(lambda x: f(x, True), tmp_path / "calls")
    np.testing.assert_allclose(problem.F, X**2)  # type: ignore[arg-type]


# Kills.


@pytest.mark.skipif(sys.platform == "win32", reason="kills by signals")
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_process_that_was_killed_goes_on_and_no_point_is_computed_twice(tmp_path: Path, jobs: int) -> None:
    cache, log = tmp_path / "samples.npz", tmp_path / "log"
    program = [sys.executable, killed_calls.__file__, str(cache), str(log), str(jobs)]
    for last in (7, 30, 40):
        assert subprocess.run([*program, str(last)]).returncode == -9
    assert not cache.exists()
    subprocess.run([*program, "0"], check=True)
    calls = log.read_text().split()
    assert len(calls) - len(set(calls)) <= 3 * (jobs - 1)  # with several, one may be killed between log and cache
    assert len(set(calls)) <= killed_calls.CALLS + 10
    with np.load(f"{cache}.done.npz") as file:
        once = ub.Problem.from_function(killed_calls.exact, killed_calls.X, derivatives="forward")
        np.testing.assert_array_equal(file["F"], once.F)
        np.testing.assert_array_equal(file["J"], once.J)


def journal(tmp_path: Path) -> Path:
    """A journal as a killed process leaves it."""
    file = CallFile(tmp_path / "calls", 2)
    for x in X[:10]:
        file.add_call(x, Counted()(x))
    file._journal.close()
    return tmp_path / "calls.partial"


@given(cut=st.integers(0, 10**6), noise=st.binary(max_size=40))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_journal_may_end_anywhere_and_in_anything(tmp_path: Path, cut: int, noise: bytes) -> None:
    """The law: whole records before the damage are known, all else is computed, and the result is the same."""
    path = journal(tmp_path)
    content = path.read_bytes()
    path.write_bytes(content[: len(FIRST_LINE) + cut % (len(content) - len(FIRST_LINE) + 1)] + noise)
    f = Counted()
    problem = sampled(f, tmp_path / "calls", derivatives=None)
    np.testing.assert_array_equal(problem.F, [Counted()(x) for x in X])
    (tmp_path / "calls").unlink()


# Files of something else.


def test_a_cache_of_other_inputs_or_outputs_is_refused(tmp_path: Path) -> None:
    sampled(Counted(), tmp_path / "calls")
    with pytest.raises(FileError, match="has calls of a function of 2 inputs, and X has 3: give another cache="):
        ub.Problem.from_function(lambda x: x, np.ones((5, 3)), derivatives=None, cache=tmp_path / "calls")
    (tmp_path / "other").mkdir()
    journal(tmp_path / "other")
    with pytest.raises(FileError, match="2 inputs, and X has 3"):
        ub.Problem.from_function(lambda x: x, np.ones((5, 3)), derivatives=None, cache=tmp_path / "other" / "calls")


def test_a_cache_of_another_function_is_refused_and_that_of_an_edited_one_is_not(tmp_path: Path) -> None:
    sampled(lambda x: x**2, tmp_path / "calls")
    with pytest.raises(ub.UnbraidError, match=r"has calls of another function: .* says something else at"):
        sampled(lambda x: x**3, tmp_path / "calls")
    sampled(lambda x: x * x, tmp_path / "calls")
    for power in (2, 3):
        with pytest.raises(ub.UnbraidError) if power == 3 else np.errstate():
            sampled(lambda x, power=power: x**power, tmp_path / "calls")


def test_networks_are_kept_and_those_with_other_weights_refused(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2)).double()
    for derivatives in ("auto", "forward"):
        one, two = (arrays(sampled(network, tmp_path / "calls", derivatives=derivatives)) for _ in range(2))
        np.testing.assert_array_equal(one[0], two[0])
        np.testing.assert_array_equal(one[1], two[1])
    with torch.no_grad():
        network[0].bias += 1.0
    with pytest.raises(ub.UnbraidError, match="has calls of another function"):
        sampled(network, tmp_path / "calls")


def test_an_edited_function_may_take_batches_where_it_took_points(tmp_path: Path) -> None:
    one = sampled(lambda x: [x[0] * x[1], x[0]], tmp_path / "calls", derivatives=None)
    more = np.concatenate([X, X + 1.0])
    two = ub.Problem.from_function(
        lambda x: np.stack([x[:, 0] * x[:, 1], x[:, 0]], axis=1), more, derivatives=None, cache=tmp_path / "calls"
    )
    assert one.F is not None
    assert two.F is not None
    np.testing.assert_array_equal(two.F[: len(X)], one.F)
    np.testing.assert_array_equal(two.F[:, 1], more[:, 0])


@pytest.mark.parametrize("content", [b"hello", b"\x80\x04pickle", b"PK\x03\x04 cut off"])
def test_a_file_of_something_else_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(FileError, match=r"notes\.txt"):
        sampled(Counted(), path)
    assert path.read_bytes() == content
    path.unlink()
    (tmp_path / "notes.txt.partial").write_bytes(content)
    with pytest.raises(FileError, match="is not a journal of calls"):
        sampled(Counted(), path)


def test_an_npz_of_something_else_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "samples.npz", X=X, F=X)
    with pytest.raises(FileError, match="is not a file of calls, it holds the arrays X, F: give another cache="):
        sampled(Counted(), tmp_path / "samples.npz")
    np.savez(tmp_path / "samples.npz", X=X, F=X, calls=np.array("[1]"))
    with pytest.raises(FileError, match="it does not say what it is"):
        sampled(Counted(), tmp_path / "samples.npz")
    np.savez(tmp_path / "samples.npz", X=X, F=X, calls=np.array("{}"))
    with pytest.raises(FileError, match="of another kind, or of another version"):
        sampled(Counted(), tmp_path / "samples.npz")


def test_two_processes_do_not_write_to_the_same_file(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    file = CallFile(tmp_path / "calls", 2)
    with pytest.raises(FileError, match="is being written by another process"):
        sampled(Counted(), tmp_path / "calls")
    file._journal.close()


def test_a_folder_that_is_not_there_is_named_before_any_call(tmp_path: Path) -> None:
    f = Counted()
    with pytest.raises(FileError, match="its folder does not exist"):
        sampled(f, tmp_path / "missing" / "calls.npz")
    assert f.calls == []
