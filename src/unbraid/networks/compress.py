"""A part of a network replaced by a few curves: `ub.networks.compress`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from unbraid.errors import SettingError, as_generator, check_whole, shown
from unbraid.networks.conversion import check_torch

if TYPE_CHECKING:
    from unbraid.bases import Basis
    from unbraid.bases.constraints import Constraint
    from unbraid.networks.compressing.result import Compression

TOLERANCE = 0.01
"""What may be lost with rank="auto", as a share."""


def compress(
    network: Any,
    part: Any,
    X: Any,
    rank: int | Literal["auto"] | Sequence[int] | None = None,
    *,
    budget: float | None = None,
    tolerance: float = TOLERANCE,
    samples: int | None = None,
    outputs: Literal["values", "logits", "softmax"] | None = None,
    coupling: float | None = None,
    basis: Basis | None = None,
    constraint: Constraint | None = None,
    starts: int = 8,
    given: Literal["inputs", "activations"] | None = None,
    rng: int = 0,
    jobs: int | None = None,
    callback: Callable[[str], None] | None = None,
) -> Compression:
    """Replace a part of a PyTorch network by W1 g(W0 x) + bias, a layer with activations of its own.

    Parameters
    ----------
    network
        Any `nn.Module`; it stays as it is.
    part
        Which part: the name of a module ("head", "layers.3"), or modules of a `Sequential` that follow each other
        ("2:", "classifier.1:4", a slice). It maps vectors to vectors, or each pixel or token by itself, as 1×1
        convolutions do. A list of parts: one after another, each fitted to what those before it give.
    X
        Inputs of the network, or what the part is given: an array, a tensor, (X, y), or a loader of batches x or
        (x, y). Labels are not fitted to; whole numbers say that outputs are classes. Up to 2,000 inputs are held out,
        a fifth at most, by which all that is open is chosen.
    rank
        How many branches; a list for several parts. "auto": as few as lose at most `tolerance`.
    budget
        Instead of a rank: which share of the part's numbers its replacement may have.
    tolerance
        With "auto": the share of held-out inputs that may get another class, or, where outputs are no classes, of the
        outputs' variance that may be lost.
    samples
        How many samples are fitted to. None: 360, then twice as many, as long as that gains.
    outputs
        What the part's outputs are. "values": all count. "logits": what all share does not. "softmax": they count as
        much as they change probabilities. None: "logits" for the end of a network whose labels are classes, else
        "values".
    coupling
        λ, how much values count beside Jacobians. None: that which agrees best on held-out inputs, 1 or 3.
    basis, constraint, starts, jobs
        As in `ub.decouple`, but `BSpline(6)` if basis is None.
    given
        Whether X are "inputs" of the network or "activations" that the part is given. None: inputs, if it takes them.
    rng
        A seed.
    callback
        Called with a sentence after every fit.

    Returns
    -------
    Compression
        With `network`, `fit`, `finetune`, `table`, `sizes`, `export`.

    Examples
    --------
    >>> import torch, unbraid as ub
    >>> _ = torch.manual_seed(0)
    >>> network = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
    >>> result = ub.networks.compress(network, "1:", torch.randn(1000, 4), rank=2, samples=100, coupling=1.0)
    >>> result.network[1].samples
    DecoupledModule(
      m=8, r=2, n=2
      (pieces): PiecewiseBranches()
    )
    """
    check_torch()
    from unbraid.networks.compressing.fitting import Judge, PartFitting, default_basis, order_of_samples
    from unbraid.networks.compressing.layouts import OfSamples
    from unbraid.networks.compressing.measures import outputs_of
    from unbraid.networks.compressing.parts import check_apart, find_part
    from unbraid.networks.compressing.ranks import Asked, find_rank
    from unbraid.networks.compressing.result import Compression
    from unbraid.networks.compressing.samples import Remembered, as_pair, collect

    asked = part if isinstance(part, list | tuple) else [part]
    ranks = list(rank) if isinstance(rank, list | tuple) else [rank] * len(asked)
    if not asked or len(ranks) != len(asked):
        raise SettingError(f"rank must be one for all parts, or one a part: there are {len(asked)}, got {shown(rank)}.")
    check_settings(budget, tolerance, samples, outputs, coupling, starts)
    if callback is not None and not callable(callback):
        raise SettingError(f"callback must be a function of a sentence, or None, got {shown(callback)}.")
    parts = [find_part(network, one) for one in asked]
    sizes = [Asked.of(one, budget, tolerance) for one in ranks]
    check_apart(parts)
    if len(parts) > 1 and as_pair(X) is None and isinstance(X, Iterable):
        X = Remembered(X)  # what is held out stays the same for all parts, also where a loader shuffles
    generator = as_generator(rng)
    seed = int(generator.integers(2**31))
    told = callback if callback is not None else ignore
    current, judge, replacements, path = network, None, [], []
    for one, size in zip(parts, sizes, strict=True):
        activations = collect(current, one, X, given, np.random.default_rng(seed))
        whole = activations.given == "inputs"
        if not whole and len(parts) > 1:
            raise SettingError("Several parts need inputs of the network, got what one of them is given.")
        runs = current if whole else one.of(current)
        seen = Judge(runs, one if whole else find_part(runs, ""), activations.inputs, activations.labels, False)
        ends = seen.ends_with_part()
        several = seen.wanted.ndim == 2 and seen.wanted.shape[1] > 1
        classes = activations.classes and several
        kind = outputs if outputs is not None else "logits" if classes and ends else "values"
        classes = classes or (several and ends and kind != "values")
        seen = Judge(runs, seen.part, activations.inputs, activations.labels, classes)
        judge = seen if judge is None else judge
        fitting = PartFitting(
            name=one.name,
            activations=activations,
            function=OfSamples(one.of(current), activations.layout),
            judge=seen,
            order=order_of_samples(activations.X, generator),
            outputs=kind,
            basis=default_basis(basis),
            constraint=constraint,
            starts=starts,
            seed=seed,
            jobs=jobs,
            told=told,
            wanted=outputs_of(network, activations.inputs) if whole else seen.wanted,
        )
        found, tried = find_rank(fitting, size, samples, None if coupling is None else float(coupling))
        replacements.append(found)
        path += tried
        current = one.replaced(current, fitting.module(found.model))
    assert judge is not None
    return Compression.of(current, network, parts, replacements, judge, path)


def ignore(_: str) -> None:
    """Tell nobody."""


def check_settings(
    budget: object, tolerance: object, samples: object, outputs: object, coupling: object, starts: object
) -> None:
    """Raise an error where a setting is none that can be meant."""
    for name, value, least in (("budget", budget, 0.0), ("tolerance", tolerance, 0.0), ("coupling", coupling, 0.0)):
        if value is not None and not (isinstance(value, Real) and not isinstance(value, bool) and float(value) > least):
            raise SettingError(f"{name} must be a number above {least:g}, got {shown(value)}.")
    check_whole("starts", starts, 1)
    if samples is not None:
        check_whole("samples", samples, 10)
    if isinstance(budget, int | float) and budget >= 1.0:
        raise SettingError(f"budget must be below 1, a share of the part's numbers such as 0.25, got {shown(budget)}.")
    if outputs not in (None, "values", "logits", "softmax"):
        raise SettingError(f'outputs must be "values", "logits" or "softmax", got {shown(outputs)}.')
