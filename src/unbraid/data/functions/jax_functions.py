"""Functions of jax arrays: Jacobians by `jax.jacfwd` and `jax.jacrev`, in float64 whatever jax is set to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from unbraid.data.functions.hosts import Function, Numbers, refuse_none


@dataclass(frozen=True)
class JaxFunction:
    """A function of jax arrays, in double precision or in the precision that jax is set to."""

    f: Function
    double: bool

    @property
    def takes(self) -> str:  # noqa: D102
        return "jax arrays of float64" if self.double else "jax arrays"

    def __call__(self, x: Numbers) -> Numbers:  # noqa: D102
        with self.precision():
            return np.array(as_jax(self.f(jnp.array(x))))

    def jacobians(self, batched: bool) -> Callable[[Numbers], Numbers]:
        """By one vectorised transform of all points; point after point if f does not allow that."""

        def of_a_point(x: Any) -> Any:
            return as_jax(self.f(x[None] if batched else x)).reshape(-1)

        def jacobians(points: Numbers) -> Numbers:
            with self.precision():
                x = jnp.array(points)
                n, m = of_a_point(x[0]).size, x.shape[1]
                jacobian = (jax.jacfwd if m <= n else jax.jacrev)(of_a_point)  # m passes forwards, or n backwards
                try:
                    return np.array(jax.vmap(jacobian)(x))
                except Exception:  # such as an `if` on a value, which has no one answer for many points
                    return np.stack([np.array(jacobian(one)) for one in x])

        return jacobians

    def precision(self) -> AbstractContextManager[Any]:
        """Float64 within this block if `double`."""
        return double_precision() if self.double else nullcontext()


def hosts(f: Function) -> Iterator[JaxFunction]:
    """A function of jax arrays in float64, and in the precision that jax is set to if it refuses that."""
    yield JaxFunction(f, double=True)
    yield JaxFunction(f, double=False)


def double_precision() -> AbstractContextManager[Any]:
    """Float64 in jax within this block, and as before outside of it."""
    if hasattr(jax, "enable_x64"):
        context: AbstractContextManager[Any] = jax.enable_x64(True)
    else:  # jax before 0.8
        from jax.experimental import enable_x64

        context = enable_x64()
    return context


def as_jax(given: Any) -> Any:
    """What f returned as one array."""
    refuse_none(given)
    return jnp.asarray(given)
