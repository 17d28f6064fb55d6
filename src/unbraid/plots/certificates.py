"""What is certain about the shape of a branch, in words that fit above a panel."""

from __future__ import annotations

import math

from unbraid.bases.constraints import CONSTRAINTS, Constraint, NonNegative
from unbraid.results.alignment import AlignedBranch
from unbraid.results.branch import Branch

FAILED = "not certified ✗"
MEANS = {(one.order, one.sign): one.means for one in CONSTRAINTS}


def certificate_words(branch: Branch | AlignedBranch, constraint: Constraint | None) -> str:
    """Whether coefficients certify the shape asked for: 'increasing, certified ✓'; empty where none was asked for."""
    if constraint is None:
        return ""
    own = branch.branch if isinstance(branch, AlignedBranch) else branch
    shape = as_drawn(branch, constraint)
    return f"{shape}, certified ✓" if own.certified(constraint) else f"{shape}: {FAILED}"


def certain_shapes(branch: Branch | AlignedBranch) -> str:
    """What the coefficients of a branch certify, whether it was asked for or not: rising or falling, and bending."""
    own = branch.branch if isinstance(branch, AlignedBranch) else branch
    holding = [one() for one in CONSTRAINTS if one is not NonNegative and own.certified(one())]
    by_order = {one.order: one for one in reversed(holding)}  # a straight line is convex and concave: one will do
    words = [as_drawn(branch, by_order[order]) for order in sorted(by_order)]
    return f"{' and '.join(words)}, certified ✓" if words else ""


def as_drawn(branch: Branch | AlignedBranch, constraint: Constraint) -> str:
    """The constraint's word, for the curve as it is drawn: laid on a true one it may be mirrored.

    g(u) = a ĝ(s u) + b has the k-th derivative a sᵏ ĝ⁽ᵏ⁾(s u).
    """
    if not isinstance(branch, AlignedBranch):
        return constraint.means
    if constraint.order == 0:
        return f"{constraint.means} in its own scale"
    mirrored = math.copysign(1.0, branch.scale) * math.copysign(1.0, branch.input_scale) ** constraint.order
    return MEANS[constraint.order, int(mirrored) * constraint.sign]
