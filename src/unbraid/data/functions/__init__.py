"""Samples of a function: what kind of function it is, its values, its Jacobians.

`hosts` calls a function with what it takes (NumPy arrays, torch tensors, jax arrays) and always answers in NumPy
arrays; `recognition` finds out whether it takes points or batches, and makes a `Form` of it, a function of a batch that
names the point where it fails; `differences` and `complex_step` take derivatives of what has none of its own,
`jumps` tells where there are none; `agreement` holds any other Jacobian against a difference quotient; `few_calls`
takes differences of expensive functions, and `kept` has what they answered; `sampling` puts them together.
"""

from unbraid.data.functions.forms import Failures
from unbraid.data.functions.hosts import Function
from unbraid.data.functions.kept import Kept
from unbraid.data.functions.sampling import (
    Derivatives,
    SamplingSettings,
    calling,
    check_function,
    notes_on_calls,
    sample_function,
)

__all__ = [
    "Derivatives",
    "Failures",
    "Function",
    "Kept",
    "SamplingSettings",
    "calling",
    "check_function",
    "notes_on_calls",
    "sample_function",
]
