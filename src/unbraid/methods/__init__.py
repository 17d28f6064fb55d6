"""Methods by the papers they come from: compositions of the same parts.

A method is what `decouple(..., method=...)` takes: a solver, with a default basis and stopping rules. May import
`solvers` and what lies below.
"""

from unbraid.methods.alternating import AlternatingMethod, default, dejonghe2025, zniyed2021
from unbraid.methods.base import Method
from unbraid.methods.filtered import decuyper2022
from unbraid.methods.polynomial import dreesen2015, hollander2017

__all__ = [
    "AlternatingMethod",
    "Method",
    "decuyper2022",
    "default",
    "dejonghe2025",
    "dreesen2015",
    "hollander2017",
    "zniyed2021",
]


def __dir__() -> list[str]:
    return __all__
