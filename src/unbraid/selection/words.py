"""A selection in words: the reason for the recommendation, and the table."""

from __future__ import annotations

from collections.abc import Sequence

from unbraid.selection.rule import as_good, exact
from unbraid.selection.validation import Row, Settings
from unbraid.solvers.coupling import FixedCoupling


def reason(rows: Sequence[Row], chosen: Row, finer: Sequence[Row], ends_early: bool) -> str:
    """Why these settings, in a few sentences."""
    rank, named = chosen.settings.rank, name_candidate(chosen.settings, rows)
    if exact(chosen):
        return f"{named} predicts held-out samples to 0.01 % or better, so no further branch is needed."
    found = f"{named} has a held-out error of {chosen.error:.1e}"
    fewer = min((row for row in rows if row.settings.rank < rank), key=lambda row: row.error, default=None)
    if fewer is not None and fewer.error > chosen.error:
        times = float(f"{fewer.error / chosen.error:.2g}")
        found += f", {times:,g} times below that of rank {fewer.settings.rank}"
    more = [row for row in rows if row.settings.rank > rank]
    instead = [row for row in finer if row.settings.rank == rank and any(as_good(row, other) for other in more)]
    if not more:
        found += f". {LAST_BY_ITSELF if ends_early else LAST_OF_GIVEN}"
    elif not instead:
        found += "; more branches lower it by no more than one standard error."
    else:
        best = min(instead, key=lambda row: row.error)
        found += (
            ". What more branches gain, a finer basis gains as well: the error that is left is that of the basis, and "
            f"{best.settings.basis!r} has {best.error:.1e}."
        )
    sizes = {row.settings.basis.size for row in rows}
    largest = len(sizes) > 1 and chosen.settings.basis.size == max(sizes)
    return f"{found} {LARGEST}" if largest and not instead else found


LARGEST = "It has the largest basis that was tried; a larger one may be better still."
LAST_BY_ITSELF = (
    "More branches would have more than half as many unknowns as there are numbers to fit: for more, give more "
    "samples or a smaller df."
)
LAST_OF_GIVEN = "No larger rank was tried."


def name_candidate(settings: Settings, rows: Sequence[Row]) -> str:
    """'Rank 3', with what else candidates differ in."""
    others = ", ".join(f"{name} = {value}" for name, value in name_differences(settings, rows).items())
    return f"Rank {settings.rank}{others and f' with {others}'}"


def name_differences(settings: Settings, rows: Sequence[Row]) -> dict[str, str]:
    """The df, degree and λ of a candidate, those in which candidates differ."""
    values = [name_settings(row.settings) for row in rows]
    own = name_settings(settings)
    return {name: own[name] for name in own if any(other[name] != own[name] for other in values)}


def name_settings(settings: Settings) -> dict[str, str]:
    """The df, degree and λ of a candidate, as far as it has them."""
    coupling = settings.coupling
    parts = {name: str(getattr(settings.basis, name)) for name in ("df", "degree") if hasattr(settings.basis, name)}
    return {**parts, "λ": f"{coupling.value:g}" if isinstance(coupling, FixedCoupling) else repr(coupling)}


def table(rows: Sequence[Row], recommended: Settings) -> str:
    """The rows, with an arrow at the recommended one; what is the same for all is left out."""
    cells = [
        {
            "rank": str(row.settings.rank),
            **name_differences(row.settings, rows),
            "unknowns": str(row.unknowns),
            "held-out error": f"{row.error:.2e}",
            "standard error": f"{row.standard_error:.1e}",
            "seconds": f"{row.seconds:.1f}",
        }
        for row in rows
    ]
    lines = [list(cells[0]), *(list(one.values()) for one in cells)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    marks = ["  ", *("→ " if row.settings == recommended else "  " for row in rows)]
    return "\n".join(
        mark + "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True))
        for mark, line in zip(marks, lines, strict=True)
    )
