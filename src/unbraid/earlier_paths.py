"""Modules under the paths at which they were once documented: `import unbraid.branch` goes on to work."""

from __future__ import annotations

from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from importlib.abc import Loader

EARLIER_PATHS = {
    "branch": "unbraid.results.branch",
    "diagnostics": "unbraid.judging.diagnostics",
    "fit": "unbraid.results.fit",
    "stopping": "unbraid.solvers.loop",
    "trace": "unbraid.results.outcome",
}
"""Where modules are now, by their earlier names."""


class EarlierPaths:
    """Finds them for `import`, and imports none before it is asked for."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> ModuleSpec | None:
        """What is known of a module under an earlier path, None for all others."""
        package, _, name = fullname.rpartition(".")
        if package != "unbraid" or name not in EARLIER_PATHS:
            return None
        return ModuleSpec(fullname, cast("Loader", SameModule(EARLIER_PATHS[name])))


class SameModule:
    """Gives `import` the module at another path: the same object, not a second one."""

    def __init__(self, path: str) -> None:
        self.path = path

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module itself."""
        module = import_module(self.path)
        self.spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is left to run; what is imported gets back what it says of itself."""
        module.__spec__ = self.spec
