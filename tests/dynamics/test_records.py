"""Records: what they take, what they refuse and in which words, and what periods tell."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import unbraid as ub
from draws import few_or_many
from unbraid.dynamics import Record
from unbraid.dynamics.record import as_records, noise_left, notes_on_periods
from unbraid.errors import UnbraidError
from unbraid.kernels.arrays import Array

T = 100
T_EVEN = np.linspace(0.0, 0.1 * (T - 1), T)


def sine(length: int = T) -> Array:
    return np.asarray(np.sin(0.3 * np.arange(length)))


def changed(index: Any, value: float, array: Array | None = None) -> Array:
    result = sine() if array is None else array.copy()
    result[index] = value
    return result


# What is refused


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a gap in u": ({"u": changed(5, np.nan)}, "input has to be known at every moment: cut the record"),
    "infinite outputs": ({"y": changed(5, np.inf)}, "y has entries that are infinite: put NaN"),
    "other lengths": ({"y": sine(T - 1)}, "one row a moment each, got 100 rows of u and 99 of y"),
    "transposed": ({"u": np.zeros((3, T))}, r"u must have one row a moment, got shape \(3, 100\): transpose it"),
    "a cube": ({"u": np.zeros((T, 2, 2))}, r"u must be \(T,\) or \(T, how many signals\)"),
    "text": ({"u": ["a"] * T}, "u must be an array of real numbers"),
    "nothing": ({"u": None}, "u must be an array of numbers, got None"),
    "an empty record": ({"u": [], "y": []}, "must not be empty"),
    "dt and t": ({"dt": 0.1, "t": T_EVEN}, "Give dt or t, not both"),
    "dt of zero": ({"dt": 0.0}, "dt must be above 0"),
    "negative dt": ({"dt": -1.0}, "dt must be"),
    "dt of text": ({"dt": "fast"}, "dt must be"),
    "uneven t": ({"t": changed(40, 4.05, T_EVEN)}, "t must be even, and it is not: from sample (39|40) to the next"),
    "a sample left out": ({"t": np.delete(0.1 * np.arange(T + 1), 30)}, "from sample 29 to the next it is 0.2"),
    "uneven t, in seconds since 1970": ({"t": 1.7e9 + changed(40, 4.05, T_EVEN)}, "t must be even"),
    "t that goes back": ({"t": T_EVEN[::-1]}, "t must be even"),
    "t that stands still": ({"t": np.zeros(T)}, "t must be even"),
    "unknown t": ({"t": changed(3, np.nan, T_EVEN)}, "t must be"),
    "t of another length": ({"t": T_EVEN[:-1]}, r"t must be \(100,\), one moment a sample"),
    "negative burn-in": ({"burn_in": -1}, "burn_in must be"),
    "all burnt in": ({"burn_in": T}, "burn_in=100, but there are only 100 samples"),
    "nothing known": ({"y": np.full(T, np.nan)}, "y has an output of which nothing is known"),
    "one output unknown": ({"y": np.column_stack([sine(), np.full(T, np.nan)])}, "of which nothing is known"),
    "a period of one": ({"period": 1}, "period must be"),
    "a period and a half": ({"period": 2.5}, "period must be"),
    "too many names": ({"input_names": ["a", "b"]}, "input_names"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_record_is_refused_in_a_sentence(case: str) -> None:
    settings, words = REFUSED[case]
    with pytest.raises(UnbraidError, match=words) as refused:
        Record(**{"u": sine(), "y": sine(), **settings})
    assert str(refused.value).endswith(".")


def test_records_belong_to_one_system() -> None:
    one, two = Record(sine(), sine()), Record(np.zeros((T, 2)) + sine()[:, None], sine())
    with pytest.raises(UnbraidError, match="record 1 has 1 input and 1 output, record 2 has 2 and 1"):
        as_records([one, two])
    with pytest.raises(UnbraidError, match=r"the same sampling time: record 1 has 1, record 2 has 0\.5\. Resample"):
        as_records([one, Record(sine(), sine(), 0.5)])
    for wrong in ([], None, "record", [one, sine()], sine()):
        with pytest.raises(UnbraidError, match=r"records must be a ub\.dynamics\.Record or a list of them"):
            as_records(wrong)
    assert as_records((one, one)) == (one, one)
    with pytest.raises(UnbraidError) as refused:
        as_records(one.y)
    assert len(str(refused.value)) < 150
    assert ", ..., " in str(refused.value)


def test_a_stretch_is_a_slice_of_consecutive_samples() -> None:
    record = Record(sine(), sine())
    for wrong in (slice(0, 50, 2), slice(20, 10), slice(200, 300), slice(0.5, 9), slice("a", None), 5, None):
        with pytest.raises(UnbraidError, match="consecutive samples"):
            record.take(wrong)  # type: ignore[arg-type]


# What is taken


def test_signals_are_columns_and_cannot_be_written_to() -> None:
    record = Record(sine(), [[1, 2]] * T)
    assert (record.u.shape, record.y.shape, record.nu, record.ny, len(record)) == ((T, 1), (T, 2), 1, 2, T)
    assert record.u.dtype == record.y.dtype == np.float64
    with pytest.raises(ValueError, match="read-only"):
        record.u[0] = 1.0


def test_moments_of_sampling_give_the_sampling_time() -> None:
    rng = np.random.default_rng(0)
    assert Record(sine(), sine(), t=T_EVEN).dt == pytest.approx(0.1)
    assert Record(sine(), sine(), t=T_EVEN + 3.0 + 1e-6 * rng.standard_normal(T)).dt == pytest.approx(0.1, rel=1e-3)
    assert Record(sine(), sine(), t=1.7e9 + T_EVEN).dt == pytest.approx(0.1)
    assert Record(sine(), sine()).dt == 1.0
    np.testing.assert_allclose(Record(sine(), sine(), 0.5).time, 0.5 * np.arange(T))


def test_names_come_from_data_frames() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"valve": sine(), "level": sine(), "flow": sine()})
    record = Record(frame[["valve"]], frame[["level", "flow"]])
    assert record.input_names == ("valve",)
    assert record.output_names == ("level", "flow")
    assert Record(frame["valve"], frame["level"]).ny == 1
    assert Record(frame[["valve"]], frame[["level"]], input_names=["u"]).input_names == ("u",)
    assert record.take(slice(10, 20)).output_names == ("level", "flow")


def test_a_stretch_keeps_what_is_left_of_the_burn_in() -> None:
    record = Record(sine(), sine(), 0.2, burn_in=30)
    part = record.take(slice(20, 60))
    assert (len(part), part.burn_in, part.dt) == (40, 10, 0.2)
    np.testing.assert_array_equal(part.u, record.u[20:60])
    assert record.take(slice(50, None)).burn_in == 0
    assert len(record.take(slice(-10, None))) == 10


def test_it_says_what_it_is() -> None:
    assert repr(Record(sine(), sine(), 0.25)) == "Record(T=100 samples, 1 input, 1 output, dt=0.25)"
    assert "burn_in=10, period=20" in repr(Record(sine(), sine(), burn_in=10, period=20))


# Periods


def periodic(P: int, count: int, noise: float, rng: np.random.Generator) -> tuple[Array, Array]:
    u, y = rng.standard_normal(P), rng.standard_normal(P)
    return np.tile(u, count), np.tile(y, count) + noise * rng.standard_normal(P * count)


def test_periods_are_averaged_which_lowers_the_noise() -> None:
    rng = np.random.default_rng(0)
    u, y = periodic(200, 16, 0.0, rng)
    off = 0.1 * rng.standard_normal(y.shape)
    (used,) = as_records(Record(u, y + off, period=200))
    assert (len(used), used.burn_in, used.period) == (400, 200, None)
    np.testing.assert_allclose(used.u[:, 0], u[:400])
    assert np.std(used.y[:, 0] - y[:400]) == pytest.approx(0.1 / 4.0, rel=0.2)


def test_what_differs_between_periods_is_the_noise_and_averages_have_less_of_it() -> None:
    rng = np.random.default_rng(0)
    u, y = periodic(100, 8, 0.3, rng)
    record = Record(u, np.column_stack([y, 10.0 * y]), period=100)
    [used] = as_records(record)
    assert noise_left([record]) == pytest.approx(np.array([0.3, 3.0]) / np.sqrt(8), rel=0.1)
    true = periodic(100, 8, 0.0, np.random.default_rng(0))[1][:100]
    assert noise_left([record]) == pytest.approx(np.std(used.y[100:] - true[:, None] * [1.0, 10.0], axis=0), rel=0.3)
    assert noise_left([Record(u, y)]) is None
    assert noise_left([Record(u[:150], y[:150], period=100)]) is None


def test_records_without_periods_have_all_of_the_noise() -> None:
    u, y = periodic(100, 8, 0.3, np.random.default_rng(0))
    both = [Record(u, y, period=100), Record(u[:300], y[:300])]
    assert noise_left(both) == pytest.approx(0.3 * np.sqrt((100 / 8 + 300) / 400), rel=0.1)


@few_or_many(10, 200)
def test_a_transient_in_the_first_period_is_left_out_and_told(draws: int) -> None:
    """And noise alone hardly ever looks like one."""
    rng, alarms = np.random.default_rng(0), 0
    for _ in range(draws):
        u, y = periodic(100, 8, 0.01, rng)
        alarms += bool(notes_on_periods([Record(u, y, period=100)]))
        record = Record(u, y + 0.3 * 0.8 ** np.arange(800), period=100)
        [note] = notes_on_periods([record])
        assert "A transient is left out, 1 period of 8: the first differs from the later ones by" in note
        assert note.endswith("Give burn_in=100.")
        assert noise_left([record]) == pytest.approx(0.01 / np.sqrt(7), rel=0.15)
        [used] = as_records(record)
        np.testing.assert_allclose(used.y, as_records(Record(u, y, period=100, burn_in=100))[0].y, atol=1e-9)
    assert alarms <= 0.02 * draws


def test_a_slow_transient_is_left_out_of_half_of_the_periods_at_most() -> None:
    u, y = periodic(50, 6, 0.001, np.random.default_rng(0))
    for decay, left in ((0.9, 2), (0.9999, 3)):
        record = Record(u, y + 5.0 * decay ** np.arange(300), period=50)
        note, *others = notes_on_periods([record])
        assert f"A transient is left out, {left} periods of 6" in note
        assert note.endswith(f"Give burn_in={50 * left}.")
        assert bool(others) == (noise_left([record]) is None) == (left == 3)


def test_two_periods_that_a_transient_makes_differ_are_not_averaged_and_tell_no_noise() -> None:
    u, y = periodic(200, 2, 0.1, np.random.default_rng(0))
    assert noise_left([Record(u, y, period=200)]) == pytest.approx(0.1 / 2**0.5, rel=0.3)
    from_rest = y + np.exp(-np.arange(len(y)) / 40.0)[:, None]
    record = Record(u, from_rest, period=200)
    [used] = as_records(record)
    np.testing.assert_array_equal(used.y, record.y)
    assert (used.burn_in, used.period, noise_left([record])) == (0, None, None)
    [note] = notes_on_periods([record])
    assert note.startswith("What differs between the periods may be a transient or noise")


def test_measured_inputs_that_differ_a_little_are_averaged_and_told() -> None:
    rng = np.random.default_rng(0)
    u, y = periodic(50, 4, 0.1, rng)
    measured = u + 1e-4 * rng.standard_normal(200)
    record = Record(np.column_stack([measured, 5.0 + 1e-12 * u]), y, period=50)
    [used] = as_records(record)
    np.testing.assert_allclose(used.u[:50, 0], measured.reshape(4, 50).mean(axis=0))
    [note] = notes_on_periods([record])
    assert note.startswith("Inputs differ from period to period by 0.0")
    assert note.endswith("look at period=50 if they should be equal.")
    assert notes_on_periods([Record(1e200 * u, 1e200 * y)]) == ()
    with pytest.raises(UnbraidError, match=r"u differs from period to period by 4\d\.\d % of its spread \(valve\)"):
        as_records(Record(u + 0.5 * rng.standard_normal(200), y, period=50, input_names=["valve"]))


def test_the_transient_before_whole_periods_is_left_out() -> None:
    """The burn-in, and what is left of a period."""
    u, y = periodic(50, 5, 0.0, np.random.default_rng(0))
    wild = y.copy()
    wild[:70] = 100.0
    (used,) = as_records(Record(u, wild, period=50, burn_in=70))
    np.testing.assert_allclose(used.y[:50, 0], y[:50])
    (used,) = as_records(Record(u[20:], wild[20:], period=50, burn_in=60))
    np.testing.assert_allclose(used.y[:50, 0], y[:50])


def test_gaps_in_some_periods_are_filled_by_others() -> None:
    u, y = periodic(50, 4, 0.0, np.random.default_rng(0))
    y[60:70] = np.nan
    y[[5, 55, 105, 155]] = np.nan
    (used,) = as_records(Record(u, y, period=50))
    assert np.flatnonzero(np.isnan(used.y[:, 0])).tolist() == [5, 55]
    noise = noise_left([Record(u, y, period=50)])
    assert noise is not None
    assert noise[0] < 1e-9


def test_periods_that_do_not_repeat_are_refused() -> None:
    u, y = periodic(50, 4, 0.1, np.random.default_rng(0))
    with pytest.raises(UnbraidError, match="period=49, but u differs from period to period by"):
        as_records(Record(u, y, period=49))
    with pytest.raises(UnbraidError, match="period=400, but only 200 samples count: give a whole period"):
        as_records(Record(u, y, period=400))


def test_a_period_that_ends_in_the_middle_begins_in_the_middle() -> None:
    """Whole periods are counted from the end: the first samples are a transient."""
    u, y = periodic(50, 5, 0.0, np.random.default_rng(0))
    (used,) = as_records(Record(u[:220], y[:220], period=50))
    np.testing.assert_allclose(used.y[:, 0], y[20:120])


def test_a_fit_tells_of_the_noise_between_periods() -> None:
    rng = np.random.default_rng(0)
    u = np.tile(ub.dynamics.systems.low_pass(rng, 150, 1, 0.3), (6, 1))
    y = 0.5 * np.convolve(u[:, 0], 0.8 ** np.arange(40))[: len(u)]
    noisy = Record(u, y + 0.05 * rng.standard_normal(len(u)), burn_in=150, period=150)
    fit = ub.dynamics.state_space(noisy, order=1, rank=0)
    assert fit.noise is not None
    assert fit.noise[0] == pytest.approx(0.05 / np.sqrt(5), rel=0.2)
    assert fit.simulation_error.rmse[0] < 1.5 * fit.noise[0]
    assert "of averaged periods" in repr(fit)
    assert fit.notes == ()
    both = [Record(u, noisy.y + 3.0 * (0.9 ** np.arange(900))[:, None], period=150), noisy]
    fit = ub.dynamics.state_space(both, order=1, rank=0)
    assert fit.notes[0].startswith("Record 1: A transient is left out, 1 period of 6")
    assert "A transient is left out" in repr(fit.error_on(both))


def test_one_step_ahead_is_hardly_worse_than_simulation() -> None:
    """Also where few samples count; a predictor without correction simulates."""
    truth = ub.dynamics.systems.duffing(T=20, rng=0)[1]
    for seed in (0, 6, 7):
        rng = np.random.default_rng(seed)
        u = np.tile(0.7 * ub.dynamics.systems.low_pass(rng, 150, 1, 0.2), (3, 1))
        y = truth.simulate(u)
        record = Record(u, y + 0.02 * y.std() * rng.standard_normal(y.shape), 0.1, period=150)
        fit = ub.dynamics.state_space(record, 2, 1, basis=ub.Polynomial(3), starts=1)
        assert fit.prediction_error.rmse[0] < 1.25 * fit.simulation_error.rmse[0]
