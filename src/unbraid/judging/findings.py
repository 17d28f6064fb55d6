"""What follows from the diagnostics of a fit, in words and sentences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from unbraid.data.checks import counted
from unbraid.results.advice import on_freedom, on_idle
from unbraid.results.worth.freedom import listed, named

if TYPE_CHECKING:
    from unbraid.judging.diagnostics import Diagnostics

NEGLIGIBLE = 1e-3
"""A share of what there is to explain below which a branch hardly matters."""
TWICE = 2.0
"""A share from which on its number says nothing but that branches cancel."""
OVER_ALL = 1.005
"""A share that is printed as more than 100 %."""


def was(found: Diagnostics) -> str:
    """The verb for the branches that carry nothing."""
    return "was" if len(found.superfluous) == 1 else "were"


def share_number(share: float) -> str:
    """'62.1' in a list of percentages."""
    return f"{100.0 * share:.3g}" if share <= TWICE else f"over {100.0 * TWICE:g}"


def uniqueness_words(found: Diagnostics) -> str:
    """'yes, locally', 'in canonical form; the direction of branch 3, which is a straight line, means nothing'."""
    if found.flat is None:
        return "not tested, there are too many unknowns"
    if found.unique:
        return "yes, locally"
    if found.unique_canonical:
        lines = sorted({j for one in found.freedoms if one.kind == "straight" for j in one.branches})
        if not lines:
            return "in canonical form; branches can trade straight lines"
        names = listed([str(j + 1) for j in lines])
        if len(lines) == 1:
            return f"in canonical form; the direction of branch {names}, which is a straight line, means nothing"
        return f"in canonical form; the directions of branches {names}, which are straight lines, mean nothing"
    bent = [one for one in found.freedoms if one.in_canonical_form]
    if not bent:
        return f"no, {counted(found.flat.directions, 'flat direction')}"
    return "no, " + "; ".join(f"{lower_first(named(one.branches))} can {VERBS[one.kind]}" for one in bent)


VERBS = {"parallel": "mix their curves", "rotating": "rotate", "open": "change"}


def lower_first(text: str) -> str:
    """The text with its first letter small."""
    return text[:1].lower() + text[1:]


def on_uniqueness(found: Diagnostics) -> Iterator[str]:
    """Sentences on whether other models are as good."""
    smaller = "a smaller rank or " if found.smooth else "a smaller rank, a smaller df, or "
    smaller = smaller if found.explained else ""
    if found.freedoms:
        yield from (on_freedom(one, smaller) for one in found.freedoms)
        return
    if found.flat is None or found.flat.directions == 0:
        return
    turning, curves = found.flat.directions - found.flat.curves, found.flat.curves
    if turning:
        yield (
            f"Branches can turn, in {counted(turning, 'way')}, without any change at the samples: other directions are "
            f"as good. Use {smaller}more samples."
        )
    else:
        yield (
            f"Directions are determined, but branches can trade curves, such as straight lines, in "
            f"{counted(curves, 'way')} without any change at the samples: their shapes are known up to that."
        )


def on_shares(found: Diagnostics) -> Iterator[str]:
    """A sentence where branches have more by themselves than there is to explain, as they cancel each other in part."""
    large = [str(j + 1) for j in np.flatnonzero(found.alone > OVER_ALL)]
    if large and found.follows:
        one = len(large) == 1
        which = f"Branch {large[0]} has" if one else f"Branches {', '.join(large)} have"
        yield (
            f"{which} more than 100 % by {'itself' if one else 'themselves'}: branches cancel each other in part, so "
            "read their curves together."
        )


def on_branches(found: Diagnostics) -> Iterator[str]:
    """Which ones do not stand by themselves; a smaller rank is advised only where hardly an error is left.

    Or where data do not support all branches.
    """
    if found.superfluous:
        yield on_idle(found.superfluous, found.rank)
    mixed = [set(one.branches) for one in found.freedoms if one.kind == "parallel"]
    for pair in found.parallel:
        both = f"Branches {pair.one + 1} and {pair.other + 1} are nearly parallel ({pair.angle:.2g} degrees)"
        if pair.cancelling:
            smaller = f", and try rank {found.carrying - 1}" if found.explained else ""
            yield f"{both} and nearly cancel: read their curves as a sum{smaller}."
        elif pair.mergeable and found.explained:
            yield f"{both}, and one branch may do for both: try rank {found.carrying - 1}."
        elif any({pair.one, pair.other} <= branches for branches in mixed):
            continue  # as is told of what can move
        elif found.unique is False and not pair.mergeable:
            yield f"{both}: they are two curves of one input, and other mixes of the two may do as well."
        else:
            yield f"{both}: they are two curves of one input, to be read as a sum."
    least = np.flatnonzero(found.alone < NEGLIGIBLE)
    small = [str(j + 1) for j in least if j not in found.superfluous]
    if small:
        which = f"Branch {small[0]} has" if len(small) == 1 else f"Branches {', '.join(small)} have"
        smaller = ": a smaller rank may do" if found.explained else ""
        yield f"{which} less than {100.0 * NEGLIGIBLE:g} % of what there is to explain{smaller}."
