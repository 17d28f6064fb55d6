"""From models to modules of PyTorch and back."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from unbraid.errors import MissingDependencyError, SettingError, install_hint, shown
from unbraid.results.model import DecoupledModel

if TYPE_CHECKING:
    from unbraid.networks.decoupled_module import DecoupledModule

TRAINABLE = ("W0", "W1", "bias", "coefficients")
"""What of a module can be trained."""


def module(model: DecoupledModel, trainable: Sequence[str] = TRAINABLE, dtype: Any = None) -> DecoupledModule:
    """A model as a `torch.nn.Module`: the same values, gradients of any order, and parameters that can be trained.

    Parameters
    ----------
    model
        The model; its branches are those of a fit, splines of SciPy, or closed formulas.
    trainable
        Which of ``"W0"``, ``"W1"``, ``"bias"`` and ``"coefficients"`` are parameters; the others are buffers.
    dtype
        The type of all its numbers. None: ``torch.get_default_dtype()``, single precision unless it was set, as of any
        layer. With ``torch.float64`` it has the model's values to the last digits.

    Returns
    -------
    DecoupledModule
        On the CPU; ``.to("cuda")`` works as it does on any module.

    Examples
    --------
    >>> import torch, unbraid as ub
    >>> problem, truth = ub.datasets.trig(S=100, rng=0)
    >>> fitted = ub.decouple(problem, rank=3, rng=0).model
    >>> layer = ub.networks.module(fitted, trainable=("W1", "bias"))
    >>> [name for name, _ in layer.named_parameters()]
    ['W1', 'bias']
    >>> layer(torch.tensor(problem.X, dtype=torch.float32)).shape
    torch.Size([100, 2])
    """
    check_torch()
    from unbraid.networks.decoupled_module import DecoupledModule

    if not isinstance(model, DecoupledModel):
        raise SettingError(f"model must be a DecoupledModel, such as fit.model, got {shown(model)}.")
    import torch

    dtype = torch.get_default_dtype() if dtype is None else dtype
    if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
        raise SettingError(f"dtype must be a floating point type such as torch.float64, or None, got {shown(dtype)}.")
    made = DecoupledModule(model, as_trainable(trainable))
    made.to(dtype)
    return made


def model(module: DecoupledModule) -> DecoupledModel:
    """The model that a module is now: with what was trained, and all else as it was, to the last digit.

    Branches stay in their bases. One whose training has made it so that its basis would go on differently beyond its
    domain becomes a `PiecewiseBranch`, the same function without a basis.

    Examples
    --------
    >>> import numpy as np, unbraid as ub
    >>> problem, truth = ub.datasets.trig(S=100, rng=0)
    >>> fitted = ub.decouple(problem, rank=3, rng=0).model
    >>> again = ub.networks.model(ub.networks.module(fitted))
    >>> np.array_equal(again(problem.X), fitted(problem.X))
    True
    """
    check_torch()
    from unbraid.networks.decoupled_module import DecoupledModule

    if not isinstance(module, DecoupledModule):
        raise SettingError(f"module must be what ub.networks.module has made, got {shown(module)}.")
    return module.as_model()


def restore(network: Any, state: Any) -> Any:
    """A compressed network as it was saved: a copy of `network`, with decoupled modules where `state` has them.

    Parameters
    ----------
    network
        One of the kind that was compressed, with any weights; it stays as it is.
    state
        The ``state_dict`` of the compressed network, also after training.

    Examples
    --------
    >>> import torch, unbraid as ub
    >>> _ = torch.manual_seed(0)
    >>> def new():
    ...     return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
    >>> X = torch.randn(1000, 4)
    >>> result = ub.networks.compress(new(), "1:", X, rank=2, samples=100, coupling=1.0)
    >>> torch.save(result.network.state_dict(), "small.pt")  # doctest: +SKIP
    >>> again = ub.networks.restore(new(), result.network.state_dict())  # or as it was saved
    >>> torch.equal(again(X), result.network(X))
    True
    """
    check_torch()
    from unbraid.networks.compressing.parts import restored

    return restored(network, state)


def check_torch() -> None:
    """Raise a sentence with advice where PyTorch is missing."""
    if find_spec("torch") is None:
        raise MissingDependencyError(f"Modules need PyTorch, which is not installed: {install_hint('torch')}.")


def as_trainable(given: object) -> frozenset[str]:
    """The names of what is to be trained, or an error that says what they may be."""
    names = (
        [given] if isinstance(given, str) else list(given) if isinstance(given, Sequence | set | frozenset) else None
    )
    if names is None or not all(name in TRAINABLE for name in names):
        raise SettingError(f"trainable must have some of {', '.join(TRAINABLE)}, got {shown(given)}.")
    return frozenset(names)
