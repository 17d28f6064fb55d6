"""How many branches, and how many states: one more of either, as long as held-out stretches are simulated better."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from unbraid.bases import Basis
from unbraid.data.checks import counted
from unbraid.dynamics.fit import DynamicFit
from unbraid.dynamics.identifying.choosing import FEW, LOST, HeldOutError
from unbraid.dynamics.identifying.request import Request
from unbraid.dynamics.identifying.stages import Fitted, Identification
from unbraid.dynamics.simulating.candidate import Candidate
from unbraid.fitting.session import Session
from unbraid.results.outcome import Status

MOST_STATES = 6
"""States that are tried where their number is to be found."""
Size = tuple[int, int]
"""Order and rank."""
Level = tuple[Identification, Candidate]
"""Models of one order: how they are fitted, and the best linear one on some stretches."""


@dataclass
class Climb:
    """The way to an order and a rank.

    Attributes
    ----------
    level
        Gives the level of an order.
    orders, ranks
        The largest order and rank that may be tried.
    bases
        What sizes are compared with.
    tried
        What was found, by order and rank; None where nothing was.
    """

    level: Callable[[int], Level]
    orders: int
    ranks: int
    bases: Sequence[Basis] = FEW
    tried: dict[Size, Fitted | None] = field(default_factory=dict)

    def run(self, session: Session, begin: Size) -> Size:
        """The size from which no step to a larger one makes held-out errors smaller."""
        here = begin
        self.look_at(session, here)
        while not self.is_cut():
            further = [
                size for size in self.neighbours(here) if self.look_at(session, size).is_better(self.error(here))
            ]
            if self.is_cut():
                break
            if not further:
                return self.smallest()
            here = min(further, key=lambda size: self.error(size).size)
        best = min(self.tried, key=lambda size: self.error(size).size)
        found = self.tried[best]
        self.tried[best] = None if found is None else found._replace(cut=self.cut)
        return best

    def smallest(self) -> Size:
        """The smallest size that was tried and that no other one is clearly better than."""
        sizes = sorted(self.tried, key=lambda size: (sum(size), size))
        return next(
            one for one in sizes if not any(self.error(other).is_better(self.error(one)) for other in self.tried)
        )

    def neighbours(self, here: Size) -> list[Size]:
        """One branch more, one state more; from no branches at all also two."""
        order, rank = here
        sizes = [(order, rank + 1), (order + 1, max(rank, min(1, self.ranks)))]
        sizes += [(order, 2), (order + 1, 2)] if rank == 0 else []
        return [size for size in sizes if size[0] <= self.orders and size[1] <= self.ranks and size != here]

    def look_at(self, session: Session, size: Size) -> HeldOutError:
        """The held-out error of a size."""
        if size not in self.tried and not self.is_cut():
            order, rank = size
            work, linear = self.level(order)
            share = len(self.tried) / (len(self.tried) + 4.0)  # nobody knows how many will follow
            part = session.part(0.8 * share, 0.8 * (share + 0.25 * (1.0 - share)), rank)
            if rank == 0:
                self.tried[size] = work.linear(linear)
            else:
                fewer = self.tried.get((order, rank - 1))
                beside = None if fewer is None else fewer.point.model
                self.tried[size] = work.fit_branches(part, linear, rank, self.bases, beside)
        return self.error(size)

    def error(self, size: Size) -> HeldOutError:
        """The held-out error of a size, infinite where there is none."""
        found = self.tried.get(size)
        return LOST if found is None else found.inside

    @property
    def cut(self) -> Status | None:
        """What cut the work short, Ctrl-C or the time limit; None where nothing did."""
        return next((found.cut for found in self.tried.values() if found is not None and found.cut is not None), None)

    def is_cut(self) -> bool:
        """Whether something cut the work short."""
        return self.cut is not None

    def told(self, chosen: Size, with_orders: bool) -> str:
        """What was compared, in a sentence."""
        parts = []
        for (order, rank), found in sorted(self.tried.items()):
            name = counted(rank, "branch", "branches") if rank else "none"
            where = f"order {order} with {name}" if with_orders else name
            parts.append(f"{self.error((order, rank))} for {where}" if found is not None else f"nothing for {where}")
        name = counted(chosen[1], "branch", "branches") if chosen[1] else "no branches"
        size = f"Order {chosen[0]} and {name}" if with_orders else name.capitalize()
        return f"{size}: errors on held-out stretches, in % of the spread, are {', '.join(parts)}."


def find_size(
    session: Session,
    level: Callable[[int], Level],
    request: Request,
    order: int,
    orders: int,
    notes: tuple[str, ...] = (),
) -> DynamicFit:
    """The fit of the order and rank that were asked for, or of those that are found from a first order on."""
    size = order, 0 if request.rank == "auto" else int(request.rank)
    found: Fitted | None = None
    if request.rank == "auto" or orders > order:
        climb = Climb(level, orders, request.most, FEW if len(request.bases) > 1 else request.bases)
        size = climb.run(session.part(0.0, 0.6), size)
        found = climb.tried[size]
        notes = (*notes, climb.told(size, orders > order))
    work, linear = level(size[0])
    if size[1] and not (found is not None and found.cut is not None):
        fewer = None if found is None else found.point.model
        part = session.part(0.02 if found is None else 0.6, 0.85)
        found = work.fit_branches(part, linear, size[1], request.bases, fewer) or found
    fit = session.noted(replace(work, notes=notes).finish(session, found, linear))
    session.tell_of_the_end()
    return replace(fit, status=Status.INTERRUPTED) if session.listener.take() else fit  # Ctrl-C since the last steps
