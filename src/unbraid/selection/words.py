"""A selection in words: the reason for the recommendation, and the table."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from unbraid.coupling import Coupling, FixedCoupling
from unbraid.selection.rule import as_good, exact
from unbraid.selection.validation import Row, Settings


def reason(rows: Sequence[Row], chosen: Row, finer: Sequence[Row], ends_early: bool) -> str:
    """Why these settings, in a sentence or two."""
    rank = chosen.settings.rank
    named = called(chosen.settings, rows)
    if exact(chosen):
        return f"{named} predicts held-out samples to 0.01 % or better, so no further branch is needed."
    found = f"{named} has a held-out error of {chosen.error:.1e}"
    fewer = min((row for row in rows if row.settings.rank < rank), key=lambda row: row.error, default=None)
    if fewer is not None and fewer.error > chosen.error:
        times = float(f"{fewer.error / chosen.error:.2g}")
        found += f", {times:,g} times below that of rank {fewer.settings.rank}"
    more = [row for row in rows if row.settings.rank > rank]
    if not more:
        return f"{found}. {LAST_BY_ITSELF if ends_early else LAST_OF_GIVEN}"
    instead = [row for row in finer if row.settings.rank == rank and any(as_good(row, other) for other in more)]
    if not instead:
        return f"{found}; more branches lower it by no more than one standard error."
    best = min(instead, key=lambda row: row.error)
    return (
        f"{found}. What more branches gain, a finer basis gains as well: the error that is left is that of the basis, "
        f"and {best.settings.basis!r} has {best.error:.1e}."
    )


LAST_BY_ITSELF = (
    "More branches would have more than half as many unknowns as there are numbers to fit: for more, give more "
    "samples or a smaller df."
)
LAST_OF_GIVEN = "No larger rank was tried."


def called(settings: Settings, rows: Sequence[Row]) -> str:
    """'Rank 3', with the basis and λ where candidates differ in them."""
    name = f"Rank {settings.rank}"
    if any(row.settings.basis != settings.basis for row in rows):
        name += f" with {settings.basis!r}"
    if any(row.settings.coupling != settings.coupling for row in rows):
        name += f" and λ = {shown(settings.coupling)}"
    return name


def shown(coupling: Coupling) -> str:
    """A fixed λ as a number, another one as it is."""
    return f"{coupling.value:g}" if isinstance(coupling, FixedCoupling) else repr(coupling)


def table(rows: Sequence[Row], recommended: Settings) -> str:
    """The rows, with an arrow at the recommended one; what is the same for all is left out."""
    settings = [row.settings for row in rows]
    columns: dict[str, Callable[[Row], str]] = {"rank": lambda row: str(row.settings.rank)}
    if len({getattr(one.basis, "df", None) for one in settings}) > 1:
        columns["df"] = lambda row: str(getattr(row.settings.basis, "df", ""))
    if len({getattr(one.basis, "degree", None) for one in settings}) > 1:
        columns["degree"] = lambda row: str(getattr(row.settings.basis, "degree", ""))
    if len({one.coupling for one in settings}) > 1:
        columns["λ"] = lambda row: shown(row.settings.coupling)
    columns |= {
        "unknowns": lambda row: str(row.unknowns),
        "held-out error": lambda row: f"{row.error:.2e}",
        "standard error": lambda row: f"{row.standard_error:.1e}",
        "seconds": lambda row: f"{row.seconds:.1f}",
    }
    lines = [list(columns), *([show(row) for show in columns.values()] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    marks = ["  ", *("→ " if one == recommended else "  " for one in settings)]
    return "\n".join(
        mark + "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True))
        for mark, line in zip(marks, lines, strict=True)
    )
