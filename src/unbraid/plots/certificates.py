"""What is certain about the shape of a branch, in words that fit above a panel."""

from __future__ import annotations

from unbraid.bases.constraints import CONSTRAINTS, Constraint, NonNegative
from unbraid.results.branch import Branch

FAILED = "not certified ✗"


def certificate_words(branch: Branch, constraint: Constraint | None) -> str:
    """Whether coefficients certify the shape asked for: 'increasing, certified ✓'; empty where none was asked for."""
    if constraint is None:
        return ""
    return f"{constraint.means}, certified ✓" if branch.certified(constraint) else f"{constraint.means}: {FAILED}"


def certain_shapes(branch: Branch) -> str:
    """What the coefficients of a branch certify, whether it was asked for or not: rising or falling, and bending."""
    holding = [one() for one in CONSTRAINTS if one is not NonNegative and branch.certified(one())]
    by_order = {one.order: one for one in reversed(holding)}  # a straight line is convex and concave: one will do
    words = [by_order[order].means for order in sorted(by_order)]
    return f"{' and '.join(words)}, certified ✓" if words else ""
