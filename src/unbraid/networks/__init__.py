"""Decoupled models as layers of neural networks, with PyTorch, which the extra `torch` brings.

May import `decouple` and what lies below. Nothing here imports torch before it is asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from unbraid.networks.compress import compress
from unbraid.networks.conversion import model, module, restore

LAZY = {
    "Compression": "unbraid.networks.compressing.result",
    "DecoupledModule": "unbraid.networks.decoupled_module",
}
"""Names whose modules import torch."""

if TYPE_CHECKING:
    from unbraid.networks.compressing.result import Compression as Compression
    from unbraid.networks.decoupled_module import DecoupledModule as DecoupledModule
else:

    def __getattr__(name: str) -> Any:
        if name not in LAZY:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from unbraid.networks.conversion import check_torch

        check_torch()
        return getattr(import_module(LAZY[name]), name)


__all__ = ["Compression", "DecoupledModule", "compress", "model", "module", "restore"]


def __dir__() -> list[str]:
    return __all__
