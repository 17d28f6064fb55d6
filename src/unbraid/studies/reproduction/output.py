"""What a reproduction leaves in its folder: raw numbers, figures, Table 1 and a summary page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from unbraid.data.checks import counted
from unbraid.studies.reproduction.claims import (
    Verdict,
    certified_counts,
    monotone_verdicts,
    trig_verdicts,
    worse_output,
)
from unbraid.studies.reproduction.figures import FEWEST, monotone_figure, trig_figure
from unbraid.studies.reproduction.readings import VARIANTS, Readings
from unbraid.studies.tables import distinct, markdown_table, values, write_bytes, write_csv, write_figure
from unbraid.studies.tasks import Rows
from unbraid.version import __version__

TABLE_1 = {8: 7, 10: 7, 12: 7, 14: 9, 16: 15, 18: 16, 20: 13}
"""The paper's Table 1: unconstrained runs, of 30, with certified monotonic branches. Constrained: 30 at every df."""


@dataclass(frozen=True)
class Reproduction:
    """The rows of the experiments that were run (empty for one that was not), and how."""

    trig: Rows
    monotone: Rows
    runs: int
    seed: int
    readings: Readings
    command: str


def write_reproduction(results: Reproduction, folder: Path) -> list[Path]:
    """Write the summary page, the numbers, figures and Table 1 into a folder; returns the files, the page first."""
    written = []
    if results.trig:
        written.append(write_csv(folder / "trig.csv", results.trig))
        written += write_figure(folder / "figure2", trig_figure(results.trig))
        written += write_figure(folder / "figure2-splines", trig_figure(results.trig, prefix=""))
    if results.monotone:
        written.append(write_csv(folder / "monotone.csv", results.monotone))
        written.append(write_csv(folder / "table1.csv", table_1(results.monotone)))
        written += write_figure(folder / "figure3", monotone_figure(results.monotone))
    page = folder / "summary.md"
    write_bytes(page, reproduction_page(results).encode())
    return [page, *written]


def table_1(rows: Rows) -> Rows:
    """Table 1 of every variant: how many runs have certified monotonic branches, df by df."""
    dfs = distinct(rows, "df")
    result: Rows = []
    for variant in VARIANTS:
        some = [row for row in rows if row["variant"] == variant]
        for constraint, name in (("none", "Unconstrained"), ("increasing", "Monotonic (+)")):
            counts = certified_counts(some, constraint)
            result.append({"variant": variant, "runs": name} | {str(df): n for df, n in zip(dfs, counts, strict=True)})
    return result


def reproduction_page(results: Reproduction) -> str:
    """The summary page in Markdown: each claim of the paper beside what was measured."""
    runs = counted(results.runs, "run")
    parts = [
        "# The paper's experiments, run again",
        f"unbraid {__version__}, {runs} a cell, seed {results.seed}. Made by `{results.command}`.",
        "Every verdict below is computed from the numbers in the CSV files, by the rule in its row."
        + (f" With only {runs} a cell, they are rough." if results.runs < 10 else ""),
    ]
    if results.trig:
        parts += ["## f_trig", claims_table(trig_verdicts(results.trig)), trig_section(results)]
    if results.monotone:
        parts += [
            "## The monotone system",
            claims_table(monotone_verdicts(results.monotone)),
            monotone_section(results),
        ]
    readings = results.readings.sentences("all" if results.monotone else "trig")
    parts += ["## How unclear points of the paper were read", "\n".join(f"- {s}" for s in readings)]
    return "\n\n".join(parts) + "\n"


def claims_table(verdicts: Sequence[Verdict]) -> str:
    """A table with one row a claim and variant; the claim and its rule stand in the first row of each claim."""
    rows, before = [], ""
    for one in verdicts:
        claim = f"{one.claim} *({one.rule}.)*" if one.claim != before else ""
        rows.append([claim, VARIANTS[one.variant], one.measured, f"**{one.verdict}**"])
        before = one.claim
    return markdown_table(["the paper says", "variant", "measured", "verdict"], rows)


def trig_section(results: Reproduction) -> str:
    """The part of the page on f_trig: Figure 2 and the medians behind it."""
    rows, dfs = results.trig, distinct(results.trig, "df")
    table = []
    for variant in VARIANTS:
        some = [row for row in rows if row["variant"] == variant]
        for degree in distinct(rows, "degree"):
            medians = [f"{np.median(worse_output(some, degree, df)):.2g}" for df in dfs]
            table.append([VARIANTS[variant], str(degree), *medians])
    return "\n\n".join(
        [
            "![Error(J) and output errors over df](figure2.svg)",
            f"Polynomials of degree 10 through the branches, as in the paper; {drawn_words(results.runs)}. The splines "
            "themselves: [figure2-splines.svg](figure2-splines.svg). Median over the runs of the worse output's error, "
            "in %, polynomials put through the branches:",
            markdown_table(["variant", "d", *(f"df {df}" for df in dfs)], table),
        ]
    )


def drawn_words(runs: int) -> str:
    """What the figures draw of so many runs."""
    return "outliers are not drawn" if runs >= FEWEST else "every dot is a run"


def monotone_section(results: Reproduction) -> str:
    """The part of the page on the monotone system: Figure 3, Table 1 and the medians behind them."""
    rows, dfs = results.monotone, distinct(results.monotone, "df")
    counts = [
        [VARIANTS[row["variant"]], row["runs"], *(str(row[str(df)]) for df in dfs)] for row in table_1(results.monotone)
    ]
    if results.runs == 30:
        counts.insert(0, ["the paper", "Monotonic (+)", *("30" if df in TABLE_1 else "" for df in dfs)])
        counts.insert(0, ["the paper", "Unconstrained", *(str(TABLE_1.get(df, "")) for df in dfs)])
    errors = []
    for variant in VARIANTS:
        some = [row for row in rows if row["variant"] == variant]
        for constraint, name in (("none", "Unconstrained"), ("increasing", "Monotonic (+)")):
            medians = [f"{np.median(values(some, 'error_J', constraint=constraint, df=df)):.1e}" for df in dfs]
            errors.append([VARIANTS[variant], name, *medians])
    header = ["variant", "runs", *(f"df {df}" for df in dfs)]
    return "\n\n".join(
        [
            "![Error(J) over df, with and without the constraint](figure3.svg)",
            f"Table 1: runs, of {results.runs}, in which every branch is certified monotonic (up or down):",
            markdown_table(header, counts),
            "Median Error(J):",
            markdown_table(header, errors),
        ]
    )
