"""Dynamic models in other languages: a step in C, a simulation in MATLAB; their function leaves as static ones do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from unbraid.export.files import export_model
from unbraid.runtime.files import StrPath

if TYPE_CHECKING:
    from unbraid.dynamics.models.base import DynamicModel

ENDINGS = {
    ".c": "unbraid.dynamics.export.c",
    ".h": "unbraid.dynamics.export.c",
    ".m": "unbraid.dynamics.export.matlab",
}
"""The modules that write files, by ending; each has a function `write(model, options)`."""


def export_dynamic(
    model: DynamicModel, path: StrPath, *, name: str | None = None, dtype: Literal["float64", "float32"] = "float64"
) -> tuple[Path, ...]:
    """Write a dynamic model to a file whose ending says in which language, and return the files that were written."""
    return export_model(model, path, name=name, dtype=dtype, endings=ENDINGS)
