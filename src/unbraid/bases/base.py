"""What a basis is: a frozen specification, and its placement on samples.

A *specification* (`BSpline(df=12)`) holds no data. *Placing* it on branch inputs u fixes its knots or its
range, for any number of branches at once (leading axes); prediction never places again.

A placement works in coordinates `a` (..., K) of its own choice, in which value, slope and curvature
are linear. The paper's coefficients c, with c[0] the constant, are read off by `paper_coefficients`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from unbraid.kernels.arrays import Array, BoolArray


class NormalEquations(NamedTuple):
    """min over a of ‖G - B a‖² + λ ‖R - B̃ a‖², as gram a = right. Shapes (..., K, K), (..., K).

    `total` (..., K) is the sum of B̃ over the samples, so total · a is the sum of a branch's values. All three are
    sums over samples: those of two blocks add up.
    """

    gram: Array
    right: Array
    total: Array


class Basis(ABC):
    """A family of univariate functions, by specification. Subclasses are frozen dataclasses."""

    @property
    def continued_degree(self) -> int:
        """The degree of the Taylor polynomial as which a branch can go on beyond its domain; 1: linearly at once.

        How far it is followed is the branch's `reach`. A basis of a higher degree than 2 has as many derivatives.
        """
        return 1

    @property
    @abstractmethod
    def size(self) -> int:
        """How many coefficients a branch has, the constant among them."""

    @abstractmethod
    def of_size(self, size: int) -> Self:
        """The specification with as many knots, or so high a degree, that a branch has `size` coefficients."""

    @abstractmethod
    def place(self, u: Array, evenness: float = 0.0) -> Placement:
        """Fix knots or range from branch inputs u (..., S); each leading entry on its own.

        Knots lie at quantiles of u (evenness 0), evenly over its range (1), or in between. A basis without
        knots has no use for it. Of many samples u is a part, their ends among it.
        """

    @abstractmethod
    def placement_from(self, arrays: dict[str, Array]) -> Placement:
        """Make a placement again from what its `arrays` gave."""

    @abstractmethod
    def paper_coefficients(self, placement: Any, a: Array) -> Array:
        """The paper's coefficients c (..., K), c[..., 0] the constant."""

    @property
    def smoothing_open(self) -> bool:
        """Whether the strength of its smoothing is to be chosen from the data, after a search in `searched`."""
        return False

    def for_samples(self, numbers: int, most: int) -> Basis:
        """What takes its place where it is a default, and more than enough for so few numbers that samples tell.

        `most` are the degrees of freedom that it may have.
        """
        return self

    def searched(self, constrained: bool = False) -> Basis:
        """The basis to search in: another one where settings of this one are still to be chosen from the data.

        `constrained`: whether branches are to have a shape.
        """
        return self

    def untuned(self) -> Self:
        """The basis to begin with where settings of this one are still to be chosen from the data."""
        return self

    def refusal(self) -> str | None:
        """Why this basis carries no shape constraint and what to use instead, or None if it does."""
        return None


class Placement(ABC):
    """A basis that has been placed on branch inputs: leading axes are starts and branches."""

    @abstractmethod
    def arrays(self) -> dict[str, Array]:
        """The arrays, by name, from which `placement_from` makes this placement again."""

    @abstractmethod
    def select(self, index: Any) -> Self:
        """The placement of some starts or branches: `index` goes to the leading axes."""

    @abstractmethod
    def merged(self, which: BoolArray, other: Self) -> Self:
        """The placement, with that of `other` for the starts at `which`; leading axes are starts and branches."""

    @abstractmethod
    def joined(self, others: Sequence[Self]) -> Self:
        """One placement of the starts of this one and of others, one after another along the first leading axis."""

    @abstractmethod
    def domain(self) -> Array:
        """The range of u that the basis was placed on: (..., 2)."""

    def knots(self) -> Array:
        """The points, ends included, at which pieces of the functions meet: (..., how many); none by default."""
        return self.domain()[..., :0]

    def pieces(self, a: Array) -> Array | None:
        """The functions as polynomials Σ_p P[p, ..., i] t^p between knots i and i + 1, on which t goes from -1 to 1.

        P (q + 1, ..., how many) with q ≥ 1; None where the functions are no such polynomials.
        """
        return None

    def short_pieces(self, a: Array) -> tuple[Array, Array] | None:
        """Where pieces begin and end, and one function in them, as `pieces` has it; None where it has none.

        Pieces so short that powers of t are as accurate as the basis is. For placements without leading axes.
        """
        powers = self.pieces(a)
        return None if powers is None else (self.knots(), powers)

    @abstractmethod
    def moved(self, scale: Array, shift: Array) -> Self:
        """The placement for inputs scale · u + shift: the same `a` then means the same function."""

    @abstractmethod
    def plus(self, a: Array, constant: Array) -> Array:
        """The coordinates of functions a (..., K) plus constants (...)."""

    @abstractmethod
    def at(self, u: Array) -> Any:
        """Prepare inputs u (..., S) for `evaluate` and `normal_equations`; outside the domain the last pieces go on."""

    @abstractmethod
    def evaluate(self, a: Array, at: Any, derivative: int = 0) -> Array:
        """The functions with coordinates a, or their first or second derivative: (..., S)."""

    def value_and_slope(self, a: Array, at: Any) -> tuple[Array, Array]:
        """The functions and their first derivatives: (..., S) each."""
        return self.evaluate(a, at), self.evaluate(a, at, 1)

    def design(self, u: Array, derivative: int = 0) -> Array:
        """The dense design matrix (..., S, K) of the functions, or of their derivatives, at inputs u."""
        return self.design_at(self.at(u), derivative)

    @abstractmethod
    def design_at(self, at: Any, derivative: int = 0) -> Array:
        """The same at prepared inputs."""

    def write_design(self, out: Array, at: Any, derivative: int = 0) -> None:
        """Write the design matrix of prepared inputs (B, r, S) into the last columns of `out` (B, S, r, · + K)."""
        design = np.moveaxis(self.design_at(at, derivative), -3, -2)
        out[..., out.shape[-1] - design.shape[-1] :] = design

    @abstractmethod
    def normal_equations(
        self, at: Any, G: Array, R: Array | None, coupling: float, weight: Array | None = None
    ) -> NormalEquations:
        """The normal equations of the functions nearest to slopes G and values R, both (..., S), at prepared inputs.

        `weight` (S,) is that of the samples, the same for all if None.
        """

    def normal_sums(self, at: Any, G: Array, R: Array | None, coupling: float, weight: Array | None = None) -> Any:
        """Sums over the prepared inputs, which add up over blocks of samples; `assembled` makes the equations of them.

        A basis whose equations come out of fewer numbers than they have gives these.
        """
        return self.normal_equations(at, G, R, coupling, weight)

    def assembled(self, sums: Any, coupling: float) -> NormalEquations:
        """The normal equations of all samples, from their `normal_sums`; λ is 0 without values."""
        equations: NormalEquations = sums
        return equations

    @abstractmethod
    def adjoint(self, at: Any, G: Array, R: Array | None) -> Array:
        """B'ᵀ G + B̃ᵀ R (..., K), B' and B̃ being the slopes and values of the basis at the prepared inputs."""

    @abstractmethod
    def roughness(self) -> Array:
        """A (K, K) matrix, zero for straight lines, that settles what the data leave open."""

    @property
    def penalty_open(self) -> bool:
        """Whether the strength of the penalty is still to be chosen, by `chosen_penalty`."""
        return False

    def penalty(self) -> Array | None:
        """P (..., K, K) of a penalty aᵀ P a on every branch that belongs to the objective, or None."""
        C = self.penalty_root()
        return None if C is None else C.mT @ C

    def penalty_root(self) -> Array | None:
        """C (..., k, K) with P = Cᵀ C, or None where there is no penalty."""
        return None

    def chosen_penalty(self, N: Array, b: Array, square: Array, equations: float) -> Array | None:
        """The `penalty` of a strength that is chosen here, for normal equations N a = b; None where none is open.

        N (..., r, K, r, K), b (..., r, K), the sum of squares (...) of the data and how many they are.
        """
        return None

    def of_samples(self, placed_on: int, samples: int) -> Self:
        """The placement for all `samples`, where it was placed on `placed_on` of them: sums over samples grow."""
        return self

    def loosened(self, samples: int) -> Self:
        """The placement with a penalty so weak that it only settles what so many samples leave open."""
        return self

    def keeping(self, earlier: Placement) -> Self:
        """The placement with what an earlier one of the same basis has settled beside its knots."""
        return self

    @abstractmethod
    def is_constant(self, a: Array) -> Any:
        """Whether all coefficients but the constant are zero: (...) of bool."""

    @abstractmethod
    def shape_coefficients(self, a: Array, order: int) -> tuple[Array, Array]:
        """Numbers that, if nonnegative, make the derivative of that order nonnegative on the domain.

        Returns them and, of the same shape, the rounding errors they carry.
        """

    def differentiate(self, a: Array, order: int) -> Array:
        """The inverse of `integrate`. For bases that carry constraints."""
        raise TypeError(f"{type(self).__name__} carries no constraints")

    def integrate(self, z: Array, order: int) -> Array:
        """The coordinates a (..., K) from z: z[order:] are the `shape_coefficients` of that order,
        z[:order] the free constants of integration. For bases that carry constraints.
        """
        raise TypeError(f"{type(self).__name__} carries no constraints")

    def integration_matrix(self, order: int) -> Array:
        """The matrix T (..., K, K) of `integrate`: a = T z. For bases that carry constraints."""
        raise TypeError(f"{type(self).__name__} carries no constraints")
