"""A look at samples before they are fitted: what is odd about them, in sentences, each with a cure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import Literal

import numpy as np

from unbraid.data.checks import counted
from unbraid.data.looking.neighbours import describe_by_neighbours
from unbraid.data.problem import Problem
from unbraid.kernels.arrays import Array, BoolArray
from unbraid.runtime.text import name_list, quoted_name

Kind = Literal[
    "constant", "nearly constant", "collinear", "nearly collinear", "output is an input", "row numbers", "duplicates",
    "repeated points", "outliers", "heavy tails", "discrete", "missing", "few samples", "contradiction",
]  # fmt: skip
"""What can be odd."""
LINE = 100
"""Letters of a line that is printed, at most."""
MOST_ROWS = 10_000
"""Samples that tell whether columns vary, and are sums of others."""
SAME, MOSTLY = 1e-12, 0.99
"""Columns whose range is below this share of their size are constant; nearly so where this share has one value."""
EXACTLY, NEARLY = 1e-6, 1e-3
"""Columns of which others leave less than these shares of their spread are collinear with them, exactly or nearly."""
FEWEST_ON_LINE = 5
"""Samples of an output from which on it is no chance that they lie on a line."""
ON_GRID = 1e-3
"""How far values are from multiples of a step, as a share of it, to be rounded to it."""
COUNTS = 1e-3
"""Columns whose part in a combination is below this share are left out of it."""
FAR, RARE = 10.0, 0.01
"""Values so many spreads from the median are far out; they are outliers where they are rarer than this, else tails."""
SPREAD = 1.349
"""The distance of the quartiles of a normal distribution, in standard deviations."""
FEW_VALUES, REPEATS = 10, 5
"""A column is discrete where it has at most so many values, and each so many times on average."""
FEWEST_EACH = 2.0
"""Numbers for each unknown of a straight model of one branch, below which nothing can be said."""


@dataclass(frozen=True)
class Finding:
    """Something that is odd about samples.

    Attributes
    ----------
    kind
        What it is.
    columns
        The names of the inputs or outputs it is about; empty where it is about samples.
    said
        A sentence about it.
    cure
        What to do, a sentence.
    matters
        Whether a fit should tell of it.
    """

    kind: Kind
    columns: tuple[str, ...]
    said: str
    cure: str
    matters: bool = True

    def __str__(self) -> str:
        return f"{self.said} {self.cure}"


@dataclass(frozen=True)
class Look:
    """What is odd about samples; printed, a line each."""

    problem: str
    findings: tuple[Finding, ...]

    def of(self, kind: Kind) -> tuple[Finding, ...]:
        """The findings of one kind."""
        return tuple(one for one in self.findings if one.kind == kind)

    def __len__(self) -> int:
        return len(self.findings)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __repr__(self) -> str:
        lines = [fill(str(one), LINE, initial_indent="  - ", subsequent_indent="    ") for one in self.findings]
        return "\n".join([self.problem, *(lines or ["  Nothing is odd about them."])])


@np.errstate(all="ignore")
def look_at(problem: Problem) -> Look:
    """All findings about the samples of a problem, or about some of them where they are very many."""
    some = problem.thinned()
    inputs, outputs = column_names(some)
    X = np.asarray(some.X)
    findings = [*find_missing(problem, outputs), *look_at_columns(some), *find_repeated(some, X)]
    findings += find_far(X, inputs, "Input")
    findings += find_far(np.asarray(some.F), outputs, "Output") if some.F is not None else []
    plain = set(inputs if some.encoding is None else some.encoding.column_names)
    numbers = [k for k, name in enumerate(inputs) if name in plain]
    findings += find_row_numbers(X, inputs)
    findings += find_discrete(X[:, numbers], [inputs[k] for k in numbers])  # indicators are meant to be so
    findings += [*find_few(problem), *find_contradiction(some)]
    return Look(repr(problem), tuple(findings))


@np.errstate(all="ignore")
def look_at_columns(problem: Problem) -> list[Finding]:
    """What is odd about columns as a whole: those that do not vary, and inputs that are sums of others."""
    some = problem.thinned(MOST_ROWS)
    inputs, outputs = column_names(some)
    X = np.asarray(some.X, dtype=np.float64)
    alive = np.flatnonzero(~is_constant(X))
    findings = list(find_constant(X, inputs, "input", some.J is not None))
    if some.F is not None:
        F = np.asarray(some.F, dtype=np.float64)
        findings += find_constant(F, outputs, "output", some.J is not None)
        findings += find_inputs_among_outputs(X[:, alive], F, [inputs[k] for k in alive], outputs)
    return [*findings, *find_collinear(X[:, alive], [inputs[k] for k in alive])]


def column_names(problem: Problem) -> tuple[list[str], list[str]]:
    """What inputs and outputs are called: x1, x2, … and f1, f2, … where they have no names."""
    inputs = problem.input_names or [f"x{k + 1}" for k in range(problem.m)]
    outputs = problem.output_names or [f"f{i + 1}" for i in range(problem.n)]
    return list(inputs), list(outputs)


def is_constant(columns: Array) -> BoolArray:
    """Which columns of an array do not vary, but for rounding."""
    low, high = np.fmin.reduce(columns, axis=0), np.fmax.reduce(columns, axis=0)
    return np.asarray(high - low <= SAME * np.maximum(np.abs(low), np.abs(high)))


def find_constant(columns: Array, names: Sequence[str], what: str, slopes: bool) -> Iterator[Finding]:
    """Columns that do not vary, or hardly ever; `slopes`: whether Jacobians tell of them all the same."""
    constant = is_constant(columns) if len(columns) > 1 else np.zeros(columns.shape[1], dtype=bool)
    for k in map(int, np.flatnonzero(constant)):
        name, value = quoted_name(names[k]), f"{float(np.nanmedian(columns[:, k])):.6g}"
        weight = "Its weight in the model is zero." if what == "input" else "It is fitted by its value alone."
        weight = "Only Jacobians tell what it does." if slopes else weight
        yield Finding(
            "constant",
            (names[k],),
            f"The {what} {name} is {value} in all samples. {weight}",
            "Leave it out, or give samples in which it varies.",
        )
    for k in map(int, np.flatnonzero(~constant)):
        values, counts = np.unique(columns[:, k][~np.isnan(columns[:, k])], return_counts=True)
        share = counts.max(initial=0) / max(counts.sum(), 1)
        if share >= MOSTLY and len(columns) * (1.0 - share) < FEW_VALUES:
            others = int(counts.sum() - counts.max())
            yield Finding(
                "nearly constant",
                (names[k],),
                f"The {what} {quoted_name(names[k])} is {values[np.argmax(counts)]:.6g} in all but "
                f"{counted(others, 'sample')}, so that little is known of what it does.",
                "Leave it out, or give more samples in which it differs.",
            )


def find_collinear(X: Array, names: Sequence[str]) -> Iterator[Finding]:
    """Inputs that are sums of others times numbers, exactly or nearly."""
    if X.shape[1] < 2 or len(X) <= X.shape[1]:
        return
    from scipy.linalg import qr

    Z, middle, spread = standard_columns(X)
    _, R, order = qr(Z, mode="economic", pivoting=True)
    sizes = np.abs(np.diagonal(R)) / np.sqrt(len(Z))
    independent = [int(k) for k in order[sizes > NEARLY]]
    for k in (int(k) for k in order[sizes <= NEARLY]):
        weights = np.linalg.lstsq(Z[:, independent], Z[:, k])[0]
        others = sorted(j for j, weight in zip(independent, weights, strict=True) if abs(weight) > COUNTS)
        weights = np.linalg.lstsq(Z[:, others], Z[:, k])[0]
        left = float(np.sqrt(np.mean((Z[:, k] - Z[:, others] @ weights) ** 2)))
        slopes = weights * (spread[k] / spread[others])
        constant, name = float(middle[k] - middle[others] @ slopes), quoted_name(names[k])
        total = combination(slopes, [names[j] for j in others], constant, float(np.abs(X[:, k]).max()))
        yield Finding(
            "collinear" if left <= EXACTLY else "nearly collinear",
            (names[k], *(names[j] for j in others)),
            f"The input {name} is {but_for(left, total)}: what belongs to which of them cannot be told.",
            f"Leave {name} out, or give samples in which they vary apart.",
        )


def find_inputs_among_outputs(X: Array, F: Array, inputs: Sequence[str], outputs: Sequence[str]) -> Iterator[Finding]:
    """Outputs that are an input in other units, a x + b, but for rounding."""
    for i in map(int, np.flatnonzero(~is_constant(F))):
        known = np.isfinite(F[:, i])
        if not inputs or np.count_nonzero(known) < FEWEST_ON_LINE:
            continue
        Z, middle, spread = standard_columns(np.column_stack([F[known, i], X[known]]))
        shares = np.nan_to_num(Z[:, 0] @ Z / len(Z))  # 0 of inputs that do not vary there
        k = 1 + int(np.argmax(np.abs(shares[1:])))  # the one that leaves least
        if not shares[k]:
            continue
        left = float(np.sqrt(np.mean((Z[:, 0] - shares[k] * Z[:, k]) ** 2)))
        rounded = np.hypot(rounding_of(F[known, i]) / spread[0], shares[k] * rounding_of(X[known, k - 1]) / spread[k])
        if not left <= max(NEARLY, 0.5 * rounded):
            continue
        slope, name = shares[k] * (spread[0] / spread[k]), inputs[k - 1]
        constant = float(middle[0] - slope * middle[k])
        line = combination([slope], [name], constant, float(np.abs(F[known, i]).max()))
        yield Finding(
            "output is an input",
            (outputs[i], name),
            f"The output {quoted_name(outputs[i])} is {but_for(left, line)}: a straight line in one input, which may "
            "be the output itself in other units.",
            f"If it is, leave {quoted_name(name)} out: the model predicts nothing that was not given.",
        )


def standard_columns(columns: Array) -> tuple[Array, Array, Array]:
    """Columns with means 0 and mean squares 1, and the means and standard deviations that they had."""
    powers = np.frexp(np.abs(columns).max(axis=0))[1]
    columns = np.ldexp(columns, -powers)  # so that squares neither overflow nor vanish
    middle, spread = columns.mean(axis=0), columns.std(axis=0)
    return (columns - middle) / spread, np.ldexp(middle, powers), np.ldexp(spread, powers)


def rounding_of(values: Array) -> float:
    """The step of which all differences of some values are multiples, as of numbers rounded to a digit; 0: no such."""
    levels = np.unique(values)
    if len(levels) <= FEW_VALUES:
        return 0.0
    step = float(np.diff(levels).min())
    counts = (levels - levels[0]) / step
    return step if np.abs(counts - np.round(counts)).max() < ON_GRID else 0.0


def but_for(left: float, combination: str) -> str:
    """A sum in words, and which share of the spread it leaves."""
    return combination if left <= EXACTLY else f"nearly {combination}, but for {100.0 * left:.2g} % of its spread"


def combination(slopes: Iterable[float], names: Sequence[str], constant: float, largest: float) -> str:
    """A sum in words of mathematics, '2 a - 0.5 b + 3'; without its constant where that is small for what it tells."""
    parts: list[str] = []
    terms = list(zip(slopes, map(quoted_name, names), strict=True))
    for size, name in [*terms, *([(constant, "")] if abs(constant) >= 1e-5 * largest or not terms else [])]:
        number = "" if name and abs(abs(size) - 1.0) < 1e-5 else f"{abs(size):.4g}"
        sign = ("- " if size < 0 else "+ ") if parts else ("-" if size < 0 else "")
        parts.append(sign + " ".join(filter(None, (number, name))))
    return " ".join(parts)


def find_repeated(problem: Problem, X: Array) -> Iterator[Finding]:
    """Samples that are there several times, and points with several values."""
    points, which, counts = np.unique(X, axis=0, return_inverse=True, return_counts=True)
    if len(points) == len(X):
        return
    given = [array.reshape(len(X), -1) for array in (problem.F, problem.J) if array is not None]
    whole = np.hstack([X, *map(np.asarray, given)])
    copies = len(X) - len(np.unique(whole, axis=0))
    if copies:
        yield Finding(
            "duplicates",
            (),
            f"{counted(copies, 'sample')} {'is' if copies == 1 else 'are'} exact copies of others.",
            "A fit takes copies as one sample with the sum of their weights. Remove them, unless they are meant to "
            "count more than once.",
            matters=False,
        )
    several = counts > 1
    varying = [] if problem.F is None else list(np.flatnonzero(~is_constant(np.asarray(problem.F))))
    if len(X) - len(points) > copies and varying:
        F, group = np.asarray(problem.F)[:, varying], which.reshape(-1)
        F = np.ldexp(F, -np.frexp(np.fmax.reduce(np.abs(F), axis=0))[1])  # so that squares are numbers
        means = np.stack([np.bincount(group, F[:, i]) / counts for i in range(F.shape[1])], axis=1)
        off, freedom = F - means[group], max(int(np.sum(counts[several] - 1)), 1)
        noise = np.sqrt(np.nansum(off**2, axis=0) / freedom)
        share = 100.0 * noise / np.nanstd(F, axis=0)
        yield Finding(
            "repeated points",
            (),
            f"{counted(int(several.sum()), 'point')} {'has' if several.sum() == 1 else 'have'} several samples with "
            f"different values: noise of about {', '.join(f'{one:.3g}' for one in share[:6])} % of the spread.",
            "No model can be closer to the samples than that.",
            matters=False,
        )


def find_far(columns: Array, names: Sequence[str], what: str) -> Iterator[Finding]:
    """Columns with a few values far from all others, or with long tails."""
    for k, name in enumerate(names):
        values = columns[:, k][np.isfinite(columns[:, k])]
        low, middle, high = np.quantile(values, [0.25, 0.5, 0.75]) if len(values) > FEW_VALUES else (0.0, 0.0, 0.0)
        if high <= low:
            continue
        away = np.abs(columns[:, k] - middle) * SPREAD / (high - low)
        away = np.where(np.isfinite(away), away, 0.0)
        far = np.flatnonzero(away > FAR)
        if not far.size:
            continue
        worst = int(np.argmax(away))
        if len(far) <= max(RARE * len(values), 1.0):
            yield Finding(
                "outliers",
                (name,),
                f"{what} {quoted_name(name)} has {counted(len(far), 'value')} far from all others, the farthest "
                f"{columns[worst, k]:.6g} in sample {worst} (from 0), {away[worst]:.0f} spreads from the middle.",
                'If that is a mistake, repair or remove it; if it may be one, use loss="huber".',
                matters=False,
            )
        else:
            if len(np.unique(columns[far, k])) == 1:
                yield Finding(
                    "outliers",
                    (name,),
                    f"{what} {quoted_name(name)} is exactly {columns[worst, k]:.6g} in {counted(len(far), 'sample')}, "
                    "far from all other values.",
                    "If that is a code for what is missing, write NaN there, or leave those samples out.",
                    matters=False,
                )
                continue
            log = f" Its logarithm may be the better {what.lower()}." if values.min() > 0.0 else ""
            yield Finding(
                "heavy tails",
                (name,),
                f"{what} {quoted_name(name)} has long tails: {counted(len(far), 'value')} of {len(values)} "
                f"{'is' if len(far) == 1 else 'are'} more than {FAR:.0f} spreads from the middle.",
                f"Curves are known where samples are many, not in the tails.{log}",
                matters=False,
            )


def find_discrete(X: Array, names: Sequence[str]) -> Iterator[Finding]:
    """Inputs of a few values."""
    for k, name in enumerate(names):
        values, counts = np.unique(X[:, k], return_counts=True)
        if not 2 <= len(values) <= FEW_VALUES or len(X) < REPEATS * len(values) or counts.min() < 2:
            continue
        shown = ", ".join(f"{one:.4g}" for one in values[:5]) + (", …" if len(values) > 5 else "")
        yield Finding(
            "discrete",
            (name,),
            f"The input {quoted_name(name)} has only {len(values)} different values, {shown}.",
            "What the model does between them is a guess.",
            matters=False,
        )


def find_row_numbers(X: Array, names: Sequence[str]) -> Iterator[Finding]:
    """Inputs that only count the samples, beside others."""
    steps = np.diff(X, axis=0)
    for k, name in enumerate(names):
        whole = X.shape[1] > 1 and len(X) > FEW_VALUES and bool(np.all(X[:, k] == np.round(X[:, k])))
        if whole and np.all(steps[:, k] == steps[0, k]) and steps[0, k] != 0.0:
            yield Finding(
                "row numbers",
                (name,),
                f"The input {quoted_name(name)} counts the samples, from {X[0, k]:.6g} to {X[-1, k]:.6g}.",
                "Leave it out, unless it is time and new samples come later.",
                matters=False,
            )


def find_missing(problem: Problem, outputs: Sequence[str]) -> Iterator[Finding]:
    """What is not known of values and Jacobians, by output and by sample."""
    if problem.complete:
        return
    told = []
    for what, known, full in (
        ("values", problem.known.values, problem.S),
        ("entries of Jacobians", problem.known.slopes, problem.S * problem.m),
    ):
        gaps = [] if known is None else [(quoted_name(n), int(full - k)) for n, k in zip(outputs, known, strict=True)]
        gaps = [(name, count) for name, count in gaps if count]
        if gaps:
            counts = name_list((f"{name} {count}" for name, count in gaps), len(gaps))
            told.append(f"{sum(count for _, count in gaps)} {what} (by output: {counts})")
    some = problem.thinned()
    arrays = [np.asarray(array).reshape(some.S, -1) for array in (some.F, some.J) if array is not None]
    rows = int(np.any([np.isnan(array).any(axis=1) for array in arrays], axis=0).sum())
    yield Finding(
        "missing",
        tuple(outputs),
        f"Not known are {' and '.join(told)}, in {counted(rows, 'sample')} of {some.S}.",
        "They are left out of the fit, and nothing is made up for them.",
        matters=False,
    )


def find_few(problem: Problem) -> Iterator[Finding]:
    """Whether there are too few numbers for even the smallest model."""
    unknowns = problem.n + problem.m + 2
    numbers = problem.known.entries
    if numbers < FEWEST_EACH * unknowns:
        yield Finding(
            "few samples",
            (),
            f"There are {numbers} numbers for the {unknowns} unknowns of a model of one nearly straight branch.",
            "Give more samples, Jacobians, or fewer inputs: a fit follows noise, and says little about new points.",
            matters=False,  # fits tell of what they use themselves
        )


def find_contradiction(problem: Problem) -> Iterator[Finding]:
    """Whether Jacobians are plainly not those of the values."""
    said = describe_by_neighbours(problem)
    if said is not None:
        what, _, cure = said.rpartition(". ")
        yield Finding("contradiction", (), f"{what}.", cure, matters=False)  # a fit tells of it itself
