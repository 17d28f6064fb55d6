"""Imports only point down, importing is light, and nothing prints."""

import ast
import graphlib
import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import unbraid
from unbraid.earlier_paths import EARLIER_PATHS

ROOT = Path(unbraid.__file__).parent

HOUSE = (
    "errors version earlier_paths",
    "kernels",
    "runtime",
    "bases",
    "data",
    "reading",
    "metrics",
    "results",
    "export",
    "datasets",
    "solvers",
    "methods",
    "inference",
    "fitting",
    "selection",
    "judging",
    "closed",
    "decouple estimator sample",
    "networks dynamics",
    "plots",
    "studies",
    "report",
    "__init__",
    "cli",
    "__main__",
)
"""Rooms and modules of the root from the bottom up; imports point down, or stay within a room."""

DOORS = {
    (
        "unbraid.results.fit",
        "unbraid.report",
    ): "people look for fit.report(path), and notebooks for _repr_html_, on the fit",
    (
        "unbraid.results.fit",
        "unbraid.judging.uncertainty",
    ): "people look for fit.uncertainty() on the fit; a bootstrap fits again",
    (
        "unbraid.results.fit",
        "unbraid.closed",
    ): "people look for fit.with_formulas() on the fit",
    (
        "unbraid.dynamics.fit",
        "unbraid.report.dynamic",
    ): "people look for fit.report(path) on the fit of a dynamic model",
    (
        "unbraid.results.model",
        "unbraid.export",
    ): "people look for model.export(path) on the model",
}
"""The imports that point up: only inside functions, from one module to one package, each with its reason."""

HEIGHT = {part: height for height, layer in enumerate(HOUSE) for part in layer.split()}
ROOMS = [part for layer in reversed(HOUSE) for part in layer.split() if (ROOT / part).is_dir()]
MOST_FILES = 15
"""So many files a room may have, beside its `__init__`."""
FILES = sorted(ROOT.rglob("*.py"))
names = pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))


def module_name(path: Path) -> str:
    """'unbraid.bases.splines' for src/unbraid/bases/splines.py."""
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in FILES}


def part_of(module: str) -> str:
    """The entry of HOUSE that a module belongs to."""
    return "__init__" if module == "unbraid" else module.split(".")[1]


def for_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


def statements(tree: ast.AST, into_functions: bool = True) -> Iterator[ast.AST]:
    """All nodes but those that only a type checker sees."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and for_type_checking(node):
            for other in node.orelse:
                yield from statements(other, into_functions)
        elif into_functions or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield node
            yield from statements(node, into_functions)


def imported(path: Path, into_functions: bool = True) -> set[str]:
    """The modules of this package that a file imports."""
    found: set[str] = set()
    for node in statements(ast.parse(path.read_text(encoding="utf-8")), into_functions):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} has a relative import"
            source = node.module or ""
            for alias in node.names:
                whole = f"{source}.{alias.name}"
                found.add(whole if whole in MODULES else source)
    return {module for module in found if module.split(".")[0] == "unbraid"}


def test_the_house_names_every_room_and_nothing_else() -> None:
    parts = {part_of(module) for module in MODULES}
    assert parts - set(HEIGHT) == set(), "place these in HOUSE"
    assert sum(len(layer.split()) for layer in HOUSE) == len(HEIGHT), "a room is in two places"
    assert set(HEIGHT) - parts == set(), "these of HOUSE do not exist"


def test_hints_on_installing_are_in_one_place() -> None:
    """What works is a clone: `install_hint` of `errors` says how."""
    told = [path for path in FILES if "pip install" in path.read_text(encoding="utf-8")]
    assert {path.name for path in told} == {"errors.py"}


def test_no_room_is_crowded() -> None:
    for folder in {path.parent for path in FILES}:
        files = [path for path in folder.glob("*.py") if path.name != "__init__.py"]
        assert len(files) <= MOST_FILES, f"{folder.name} has {len(files)} files"


def test_the_picture_of_the_house_in_contributing_is_that_of_the_tree() -> None:
    """One line a room, from the top down: its name, and the first sentence of its docstring."""
    lines = []
    for room in ROOMS:
        doc = ast.get_docstring(ast.parse((ROOT / room / "__init__.py").read_text(encoding="utf-8")))
        assert doc, f"{room} does not say what lives there"
        assert "ay import" in doc, f"{room} does not say what it may import"
        lines.append(f"{room + '/':12}{doc.splitlines()[0]}")
    assert "\n".join(lines) in (ROOT.parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8"), "\n".join(lines)


@names
def test_imports_only_point_down(path: Path) -> None:
    here = part_of(module_name(path))
    for module in imported(path):
        there = part_of(module)
        if (module_name(path), module) in DOORS:
            assert module not in imported(path, into_functions=False), f"the door to {module} is not inside a function"
            continue
        assert HEIGHT[there] <= HEIGHT[here], f"{here} imports {there}, which lies above it"


def test_every_door_is_used() -> None:
    for here, there in DOORS:
        assert there in imported(MODULES[here]), f"{here} does not import {there}: remove the door"


def test_no_module_imports_itself_in_a_circle() -> None:
    """Within a layer imports may go either way, as long as they come to an end."""
    graph = {name: imported(path, into_functions=False) - {name} for name, path in MODULES.items()}
    graphlib.TopologicalSorter(graph).prepare()


HEAVY = (
    "click",
    "rich",
    "matplotlib",
    "scipy.optimize",
    "pandas",
    "sklearn",
    "torch",
    "onnx",
    "onnxruntime",
    "jinja2",
    "jax",
    "h5py",
    "dask",
    "distributed",
    "unbraid.inference",
    "unbraid.judging",
    "unbraid.methods",
    "unbraid.solvers",
)
"""Other packages, and rooms of this one that only a fit or a question about it needs."""


def test_importing_the_library_imports_nothing_heavy() -> None:
    code = f"import sys, unbraid; print(*[name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
    assert done.stderr == ""


@names
def test_nothing_prints_but_the_command_line(path: Path) -> None:
    if part_of(module_name(path)) == "cli":
        return
    calls = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
    assert not [call.lineno for call in calls if ast.unparse(call.func) in ("print", "sys.stdout.write")]


def test_every_public_name_exists() -> None:
    assert sorted(set(unbraid.__all__)) == sorted(unbraid.__all__)
    for name in unbraid.__all__:
        assert getattr(unbraid, name) is not None


@pytest.mark.parametrize("earlier", EARLIER_PATHS)
def test_modules_are_found_where_they_were_documented(earlier: str) -> None:
    module = importlib.import_module(f"unbraid.{earlier}")
    assert module is getattr(unbraid, earlier) is importlib.import_module(EARLIER_PATHS[earlier])
