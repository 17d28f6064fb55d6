"""The paper's claims beside what was measured: every verdict is computed from the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from unbraid.studies.reproduction.readings import VARIANTS
from unbraid.studies.tables import distinct, values
from unbraid.studies.tasks import Rows

HOLDS, IN_PART, FAILS = "holds", "holds in part", "does not hold"
UNDER = 1.0
"""The paper's line for output errors, in %."""
RECOVERED = 5.0
"""Directions within so many degrees of the true ones count as recovered."""


@dataclass(frozen=True)
class Verdict:
    """One claim and one variant: what was measured, in words, and whether the claim holds."""

    claim: str
    rule: str
    variant: str
    measured: str
    verdict: str


class PaperClaim(NamedTuple):
    """What the paper says, the rule by which it is judged, and what applies the rule.

    `judge` takes the rows of one variant and returns what was measured, in words, and the verdict.
    """

    text: str
    rule: str
    judge: Callable[[Rows], tuple[str, str]]


def trig_verdicts(rows: Rows) -> list[Verdict]:
    """Verdicts on the claims about f_trig, by models with the paper's polynomials through their branches."""
    return verdicts(
        rows,
        [
            PaperClaim(
                "Cubic splines give output errors below 1 % for df ≥ 12.",
                "holds: in every such cell at least 75 % of the runs (the box) have both outputs below 1 %; "
                "in part: at least half of them",
                cubic_below_one_percent,
            ),
            PaperClaim(
                "Quadratic splines need a higher df for that.",
                "holds: the least df at which the medians of both outputs are below 1 %, and stay so, is larger "
                "for d = 2 than for d = 3",
                quadratic_needs_more,
            ),
            PaperClaim(
                "Linear splines, d = 1, are the worst.",
                "holds: at every df ≥ 12 the median of the worse output is largest for d = 1; in part: at most of them",
                linear_is_worst,
            ),
            PaperClaim(
                "Runs below 1 % recover the system, although the CPD is not unique.",
                "holds: of the runs with both outputs below 1 %, at least 90 % have all directions within "
                f"{RECOVERED:g} degrees of the true ones; in part: at least half",
                recovers_the_system,
            ),
        ],
    )


def monotone_verdicts(rows: Rows) -> list[Verdict]:
    """Verdicts on the claims about the monotone system."""
    return verdicts(
        rows,
        [
            PaperClaim(
                "The constraint lowers Error(J).",
                "holds: its median is lower with the constraint at every df; in part: at most of them",
                constraint_lowers_the_error,
            ),
            PaperClaim(
                "Without the constraint few runs are certified monotonic (7 to 16 of 30 in Table 1); with it all are.",
                "holds: at every df all constrained runs, and at most two thirds of the free ones; "
                "in part: all constrained runs",
                constraint_certifies,
            ),
            PaperClaim(
                "The constraint is necessary for guaranteed monotonicity.",
                "holds: at every df some free run is not certified; in part: at some df",
                constraint_is_necessary,
            ),
        ],
    )


def verdicts(rows: Rows, claims: Sequence[PaperClaim]) -> list[Verdict]:
    """A verdict on each claim for each variant that has any rows."""
    result = []
    for claim in claims:
        for variant in VARIANTS:
            some = [row for row in rows if row["variant"] == variant]
            if some:
                measured, verdict = claim.judge(some)
                result.append(Verdict(claim.text, claim.rule, variant, measured, verdict))
    return result


def worse_output(rows: Rows, degree: int, df: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The larger of e_1 and e_2 of every run of a cell, polynomials put through the branches."""
    cell = {"degree": degree, "df": df}
    return np.maximum(values(rows, "poly_e1", **cell), values(rows, "poly_e2", **cell))


def grade_claim(whole: bool, part: bool) -> str:
    """The verdict on a claim that holds as a whole, in part, or not at all."""
    return HOLDS if whole else IN_PART if part else FAILS


def span_words(counts: Sequence[int]) -> str:
    """The range of some counts: '30', or '7 to 16'."""
    return str(min(counts)) if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"


def df_words(holding: Sequence[int], asked: Sequence[int]) -> str:
    """At which of the df asked for something holds: 'at every df', 'at df = 8, 10'."""
    if len(holding) == len(asked):
        return "at every df"
    return f"at df = {', '.join(map(str, holding))}" if holding else "at no df"


def share_true(part: Iterable[bool]) -> float:
    """The share of entries that are true."""
    return float(np.mean(list(part)))


def cubic_below_one_percent(rows: Rows) -> tuple[str, str]:
    """Judge by the share of runs of cubic splines with both outputs below 1 %, cell by cell."""
    dfs = [df for df in distinct(rows, "df") if df >= 12]
    shares = [share_true(worse_output(rows, 3, df) < UNDER) for df in dfs]
    said = f"below 1 % in at least {100 * min(shares):.0f} % of the runs of every cell"
    return said, grade_claim(min(shares) >= 0.75, min(shares) >= 0.5)


def first_below(rows: Rows, degree: int) -> int | None:
    """The least df from which on the median of the worse output is below 1 %."""
    first = None
    for df in reversed(distinct(rows, "df")):
        if np.median(worse_output(rows, degree, df)) >= UNDER:
            break
        first = df
    return first


def quadratic_needs_more(rows: Rows) -> tuple[str, str]:
    """Judge by the df from which on medians are below 1 %, for cubic and for quadratic splines."""
    cubic, quadratic = first_below(rows, 3), first_below(rows, 2)
    told = [
        f"{name} from df = {df}" if df else f"{name} at no df"
        for name, df in (("cubic", cubic), ("quadratic", quadratic))
    ]
    holds = cubic is not None and (quadratic is None or quadratic > cubic)
    return f"medians below 1 %: {', '.join(told)}", grade_claim(holds, part=False)


def linear_is_worst(rows: Rows) -> tuple[str, str]:
    """Judge by the medians of the worse output, degree by degree."""
    dfs = [df for df in distinct(rows, "df") if df >= 12]
    medians = {df: [float(np.median(worse_output(rows, d, df))) for d in (1, 2, 3)] for df in dfs}
    holding = [df for df in dfs if medians[df][0] >= max(medians[df])]
    last = medians[dfs[-1]]
    listed = ", ".join(f"{median:.2g}" for median in last)
    said = f"worst {df_words(holding, dfs)}; medians at df = {dfs[-1]}: {listed} % for d = 1, 2, 3"
    return said, grade_claim(len(holding) == len(dfs), len(holding) > len(dfs) / 2)


def recovers_the_system(rows: Rows) -> tuple[str, str]:
    """Judge by the angles to the true directions, of runs below 1 %."""
    good = [row for row in rows if max(row["poly_e1"], row["poly_e2"]) < UNDER]
    if not good:
        return "no run is below 1 %", FAILS
    near = share_true(row["angle"] <= RECOVERED for row in good)
    angle = float(np.median(values(good, "angle")))
    said = f"{100 * near:.0f} % of {len(good)} runs within {RECOVERED:g} degrees, median {angle:.2g} degrees"
    return said, grade_claim(near >= 0.9, near >= 0.5)


def constraint_lowers_the_error(rows: Rows) -> tuple[str, str]:
    """Judge by the medians of Error(J) with the constraint over those without."""
    dfs = distinct(rows, "df")
    ratios = {
        df: float(
            np.median(values(rows, "error_J", df=df, constraint="increasing"))
            / np.median(values(rows, "error_J", df=df, constraint="none"))
        )
        for df in dfs
    }
    holding = [df for df in dfs if ratios[df] < 1.0]
    said = f"lower {df_words(holding, dfs)}; ratio of medians {min(ratios.values()):.2g} to {max(ratios.values()):.2g}"
    return said, grade_claim(len(holding) == len(dfs), len(holding) > len(dfs) / 2)


def certified_counts(rows: Rows, constraint: str) -> list[int]:
    """How many runs have certified monotonic branches, df by df."""
    return [int(values(rows, "certified", df=df, constraint=constraint).sum()) for df in distinct(rows, "df")]


def constraint_certifies(rows: Rows) -> tuple[str, str]:
    """Judge by how many runs are certified, with the constraint and without."""
    runs = 1 + max(row["run"] for row in rows)
    free, constrained = certified_counts(rows, "none"), certified_counts(rows, "increasing")
    said = f"free {span_words(free)} of {runs}, constrained {span_words(constrained)} of {runs}"
    all_constrained = min(constrained) == runs
    return said, grade_claim(all_constrained and max(free) <= 2 * runs / 3, all_constrained)


def constraint_is_necessary(rows: Rows) -> tuple[str, str]:
    """Judge by the df at which runs without the constraint lack a certificate."""
    runs = 1 + max(row["run"] for row in rows)
    free = certified_counts(rows, "none")
    short = [df for df, count in zip(distinct(rows, "df"), free, strict=True) if count < runs]
    return f"free runs without a certificate {df_words(short, free)}", grade_claim(len(short) == len(free), bool(short))
