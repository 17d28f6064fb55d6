"""A part of a network replaced by a few curves: `ub.networks.compress`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from unbraid.errors import SettingError, as_generator, check_callback, check_number, check_whole, shown
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
        Which part: a module or its name ("head", "layers.3"), or modules of a `Sequential` that follow each other
        ("2:", "classifier.1:4", a slice). It maps vectors to vectors, or each pixel or token by itself, as 1×1
        convolutions do. A list of parts: one after another, each fitted to what those before it give.
    X
        Inputs of the network, or what the part is given: an array, a tensor, (X, y), or a loader of batches x or
        (x, y). Labels are not fitted to; integers 0, 1, … say that outputs are classes. Up to 5,000 inputs are held
        out, a fifth at most, by which all that is open is chosen.
    rank
        How many branches; a list for several parts. "auto", or None without a budget: as few as lose at most
        `tolerance`.
    budget
        Instead of a rank: which share of the part's numbers its replacement may have.
    tolerance
        With "auto": the share of held-out inputs that may get another class, or, where outputs are no classes, of the
        outputs' variance that may be lost.
    samples
        How many samples are fitted to. None: 360, then twice as many, as long as that gains.
    outputs
        What the part's outputs are. "values": all count. "logits": what all share does not. "softmax": they count as
        much as they change probabilities. None: "softmax" for the end of a network whose labels are classes, else
        "values".
    coupling
        λ, how much values count beside Jacobians. None: that which loses least on held-out inputs, from 1 to 30.
    basis, constraint, starts, jobs
        As in `ub.decouple`, but `BSpline(6)` if basis is None.
    given
        Whether X are "inputs" of the network or "activations" that the part is given. None: inputs, if it takes them.
    rng
        A seed.
    callback
        Called with a sentence after every fit; `print` will do.

    Returns
    -------
    Compression
        With `network`, `fit`, `finetune`, `table`, `sizes`, `export`. Ctrl-C ends it with the best so far, and
        `interrupted` says so; parts that had not been reached stay as they were.

    Examples
    --------
    >>> import torch, unbraid as ub
    >>> _ = torch.manual_seed(0)
    >>> network = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
    >>> result = ub.networks.compress(network, "1:", torch.randn(1000, 4), rank=2, samples=100, coupling=1.0)
    >>> result.network[1]
    DecoupledModule(
      m=8, r=2, n=2
      (pieces): PiecewiseBranches()
    )
    """
    check_torch()
    from unbraid.networks.compressing.part_fitting import PartFitting, Settings, default_basis
    from unbraid.networks.compressing.parts import check_apart, find_part
    from unbraid.networks.compressing.ranks import Asked, find_rank, notes_on_replacement
    from unbraid.networks.compressing.refusals import check_network
    from unbraid.networks.compressing.result import Compression
    from unbraid.networks.compressing.samples import Remembered, as_pair

    wanted = part if isinstance(part, list | tuple) else [part]
    ranks = list(rank) if isinstance(rank, list | tuple) else [rank] * len(wanted)
    if not wanted or len(ranks) != len(wanted):
        raise SettingError(
            f"rank must be one for all parts, or one a part: there are {len(wanted)}, got {shown(rank)}."
        )
    check_settings(budget, tolerance, samples, outputs, coupling, starts)
    check_callback(callback, "a sentence")
    parts = [find_part(network, one) for one in wanted]
    check_network(network, parts)
    asked = [Asked.of(one, budget, tolerance) for one in ranks]
    check_apart(parts)
    if len(parts) > 1 and as_pair(X) is None and isinstance(X, Iterable):
        X = Remembered(X)  # what is held out stays the same for all parts, also where a loader shuffles
    seed = int(as_generator(rng).integers(2**31))
    told = callback if callback is not None else ignore
    settings = Settings(given, outputs, default_basis(basis), constraint, starts, seed, jobs, told)
    current, comparisons, replacements, path, notes = network, [], [], [], []
    for one, size in zip(parts, asked, strict=True):
        fitting = PartFitting.of(current, network, one, X, settings)
        if len(parts) > 1 and fitting.activations.given == "activations":
            raise SettingError("Several parts need inputs of the network, got what one of them is given.")
        found, tried = find_rank(fitting, size, samples, None if coupling is None else float(coupling))
        current = one.replaced(current, fitting.module(found.model))
        comparisons.append(fitting.comparison)
        replacements.append(found)
        path += tried
        notes += notes_on_replacement(fitting, size, found)
        if found.interrupted:
            break
    return Compression.of(current, network, parts[: len(replacements)], replacements, comparisons[0], path, notes)


def ignore(_: str) -> None:
    """Tell nobody."""


def check_settings(
    budget: object, tolerance: object, samples: object, outputs: object, coupling: object, starts: object
) -> None:
    """Raise an error where a setting is none that can be meant."""
    check_number("tolerance", tolerance, 0.0)
    for name, value in (("budget", budget), ("coupling", coupling)):
        if value is not None:
            check_number(name, value, 0.0)
    check_whole("starts", starts, 1)
    if samples is not None:
        check_whole("samples", samples, 10)
    if isinstance(budget, int | float) and budget >= 1.0:
        raise SettingError(f"budget must be below 1, a share of the part's numbers such as 0.25, got {shown(budget)}.")
    if outputs not in (None, "values", "logits", "softmax"):
        raise SettingError(f'outputs must be "values", "logits" or "softmax", got {shown(outputs)}.')
