"""Dynamic systems: models of records u(t), y(t) whose nonlinearity is a few curves, identified in one call.

The function of such a model, f(φ) = L φ + W1 g(W0 φ) + bias, is a decoupled one; what is minimised is the error of
simulation. May import everything but skins: plots, reports and the command line.
"""

from unbraid.dynamics import systems
from unbraid.dynamics.decoupling import decouple
from unbraid.dynamics.fit import DynamicFit, RecordError
from unbraid.dynamics.identify import narx, state_space
from unbraid.dynamics.models.base import DivergenceWarning, DynamicModel, Simulation, SimulationStatus
from unbraid.dynamics.models.files import load_model as load
from unbraid.dynamics.models.narx import NarxModel
from unbraid.dynamics.models.state_space import StateSpaceModel
from unbraid.dynamics.record import Record

__all__ = [
    "DivergenceWarning",
    "DynamicFit",
    "DynamicModel",
    "NarxModel",
    "Record",
    "RecordError",
    "Simulation",
    "SimulationStatus",
    "StateSpaceModel",
    "decouple",
    "load",
    "narx",
    "state_space",
    "systems",
]


def __dir__() -> list[str]:
    return __all__
