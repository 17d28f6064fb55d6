"""Importance in words, for `print` and `diagnose`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from unbraid.inference.importance.result import Importance, Need

MOST_OUTPUTS, MOST_NAMES, MOST_PAIRS = 6, 8, 3
"""How many outputs, inputs or branches of one, and pairs are told, at most."""
FAR = 0.1
"""Share of points outside the range seen from which on it is told."""
VERDICTS = ("needed", "doubtful", "hardly matters", "not needed", "does nothing")


def describe_importance(importance: Importance) -> list[str]:
    """Lines on which inputs and branches matter, two blanks and a word of at most ten letters before each."""
    lines = []
    for i, name in list(enumerate(importance.output_names))[:MOST_OUTPUTS]:
        lines += [f"  inputs      of {name}: {', '.join(input_shares(importance, i))} %"]
        lines += [f"  branches    of {name}: {', '.join(branch_shares(importance, i))} %"]
    if len(importance.output_names) > MOST_OUTPUTS:
        lines.append(f"  outputs     {MOST_OUTPUTS} of {len(importance.output_names)} are listed")
    for needs in (importance.input_needs, importance.branch_needs):
        lines += [f"  needed      {line}" for line in need_lines(needs or ())]
    return lines + [f"  note        {note}" for note in notes_on(importance)]


def input_shares(importance: Importance, i: int) -> list[str]:
    """'x1 56 (31 by itself)', 'x2 44', … of output i, the largest first."""
    total, first = importance.total[i], importance.first_order[i]
    order = np.argsort(-total, kind="stable")
    words = []
    for k in order[:MOST_NAMES]:
        joint = total[k] - first[k] >= 0.005
        alone = f" ({percent(first[k])} by itself)" if joint else ""
        words.append(f"{importance.input_names[k]} {percent(total[k])}{bounds(importance, 'total', i, k)}{alone}")
    return words + (["…"] if len(order) > MOST_NAMES else [])


def branch_shares(importance: Importance, i: int) -> list[str]:
    """'1 60', '2 40', … of output i."""
    shares = importance.branches[i]
    words = [
        f"{j + 1}: {percent(share)}{bounds(importance, 'branches', i, j)}"
        for j, share in list(enumerate(shares))[:MOST_NAMES]
    ]
    return words + (["…"] if len(shares) > MOST_NAMES else [])


def percent(share: float) -> str:
    """'56' or '0.3' of a share."""
    number = 100.0 * share
    return "0" if abs(number) < 0.05 else f"{number:.1f}" if abs(number) < 9.95 else f"{number:.0f}"


def bounds(importance: Importance, kind: str, i: int, k: int) -> str:
    """' [54, 58]' where intervals are known and say more than the number itself."""
    if importance.low is None or importance.high is None:
        return ""
    low, high = (percent(getattr(one, kind)[i, k]) for one in (importance.low, importance.high))
    return "" if low == high else f" [{low}, {high}]"


def need_lines(needs: Sequence[Need]) -> Iterator[str]:
    """Sentences on what is needed; those about which there is no question in one."""
    certain = [need.name for need in needs if need.verdict == "needed"]
    if certain:
        yield f"{listed(certain)} {'is' if len(certain) == 1 else 'are'} needed"
    other = sorted((need for need in needs if need.verdict != "needed"), key=lambda need: VERDICTS.index(need.verdict))
    yield from (need.words for need in other[:MOST_NAMES])


def notes_on(importance: Importance) -> Iterator[str]:
    """What is to be known before the numbers are believed."""
    names = importance.input_names
    if importance.inputs_together:
        pairs = [(names[one.one], names[one.other], one.correlation) for one in importance.inputs_together]
        yield (
            f"Inputs go together in the samples ({pairs_in_words(pairs)}) but count as independent in the indices: "
            "what two of them share is told of both."
        )
    if importance.outside > FAR:
        yield (
            f"{100.0 * importance.outside:.0f} % of the points with independent inputs lie outside the range of a "
            "branch that was seen in training: indices there rest on how branches go on."
        )
    opposed = [one for one in importance.branches_together if one.correlation < 0.0]
    if opposed or importance.branches_together:
        pairs = [(f"{one.one + 1}", f"{one.other + 1}", one.correlation) for one in importance.branches_together]
        cancel = "cancel each other in part" if opposed else "overlap"
        yield f"Branches {cancel} ({pairs_in_words(pairs)}): read their shares together."
    if importance.doubt is not None:
        yield importance.doubt


def pairs_in_words(pairs: Sequence[tuple[str, str, float]]) -> str:
    """'a and b 0.93, a and c -0.71'."""
    told = [f"{one} and {other} {correlation:.2f}" for one, other, correlation in pairs[:MOST_PAIRS]]
    return ", ".join(told) + (", …" if len(pairs) > MOST_PAIRS else "")


def listed(names: Sequence[str]) -> str:
    """'a, b and c' of some names, the first ones where they are many."""
    if len(names) > MOST_NAMES:
        return f"{', '.join(names[:MOST_NAMES])} and {len(names) - MOST_NAMES} more"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
