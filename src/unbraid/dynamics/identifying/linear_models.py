"""The best linear state-space models of records, order by order, where identifications begin."""

from __future__ import annotations

from collections.abc import Sequence

from unbraid.dynamics.identifying.choosing import LOST
from unbraid.dynamics.identifying.climbing import MOST_STATES, Level
from unbraid.dynamics.identifying.data import Data
from unbraid.dynamics.identifying.forms import StateSpaceForm, Units
from unbraid.dynamics.identifying.linear import horizon_for, linear_model, observability
from unbraid.dynamics.identifying.request import Request
from unbraid.dynamics.identifying.search import Fitting, improve
from unbraid.dynamics.identifying.stages import Identification
from unbraid.dynamics.models.feedback import Course
from unbraid.dynamics.record import Record
from unbraid.dynamics.simulating.candidate import Candidate
from unbraid.errors import SettingError
from unbraid.fitting.session import Session

LINEAR_STEPS = 30
"""Steps on the simulation error of a linear model."""


class LinearModels:
    """The best linear state-space models of records, order by order, on some stretches of them."""

    def __init__(
        self, session: Session, records: tuple[Record, ...], request: Request, most: int = MOST_STATES
    ) -> None:
        self.session, self.records, self.request = session, records, request
        self.units = Units.of(records)
        plain = self.data(1)
        self.stretches = plain.stretches()
        courses = plain.courses(self.stretches)
        self.directions, self.singular = observability(courses, horizon_for(courses, most))
        self.levels: dict[int, Level] = {}

    def data(self, order: int) -> Data:
        """The records for a model of an order."""
        return Data(StateSpaceForm(self.records[0].nu, self.records[0].ny, order), self.units, self.records)

    def level(self, order: int) -> Level:
        """How models of an order are fitted, and the best linear one."""
        if order not in self.levels:
            data = self.data(order)
            courses = data.courses(self.stretches)
            self.levels[order] = Identification(data, self.request), self.fitted(courses, order)
        return self.levels[order]

    def fitted(self, courses: Sequence[Course], order: int) -> Candidate:
        """The linear model of an order by subspaces, and on the simulation error of some courses."""
        if order > self.directions.shape[0] - self.records[0].ny:
            raise SettingError(f"order={order} is more than records of this length tell: lower it.")
        fitting = Fitting(self.data(order).form.feedback, (), self.request.max_seconds)
        begin = linear_model(courses, self.directions, order)
        return improve(self.session, fitting, fitting.solver(courses, None, 0), begin, "linear", LINEAR_STEPS)

    def best_order(self) -> tuple[int, tuple[str, ...]]:
        """The smallest order whose linear model simulates held-out stretches about as well as any, and why."""
        errors = []
        for order in range(1, min(MOST_STATES, self.directions.shape[0] - self.records[0].ny) + 1):
            work, model = self.level(order)
            linear = work.linear(model)
            errors.append(LOST if linear is None else linear.inside)
        found = next(k for k, one in enumerate(errors, 1) if not any(other.is_better(one) for other in errors[k:]))
        told = ", ".join(f"{error} for order {k}" for k, error in enumerate(errors, 1))
        values = ", ".join(f"{value / self.singular[0]:.2g}" for value in self.singular[: found + 2])
        return found, (f"Errors of linear models on held-out stretches are {told}; singular values are {values}.",)
