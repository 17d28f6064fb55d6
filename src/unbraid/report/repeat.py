"""What is needed to repeat a fit: the call, the samples, the versions."""

from __future__ import annotations

import inspect
import json
import platform
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import scipy

from unbraid import methods
from unbraid.data.problem import Problem
from unbraid.fitting.request import Request
from unbraid.methods import Method
from unbraid.report.subject import Subject
from unbraid.version import __version__


def settings(subject: Subject) -> list[tuple[str, str]]:
    """What the fit was made with, as far as it is known, and the versions of what computes."""
    fit = subject.fit
    found = [("samples", repr(fitted_samples(subject)).removeprefix("Problem(").removesuffix(")"))]
    if fit is not None:
        shapes = ["none" if one is None else one.means for one in fit.constraints]
        seed = "not known" if fit.asked is None or fit.asked.seed is None else str(fit.asked.seed)
        found += [
            ("method", fit.method),
            ("basis", repr(fit.basis)),
            ("shape asked for", shapes[0] if len(set(shapes)) == 1 else ", ".join(shapes)),
            ("starts", str(len(fit.starts))),
            ("seed", seed),
            ("time", f"{fit.seconds:.2g} s"),
        ]
    versions = f"{__version__}, Python {platform.python_version()}, NumPy {np.__version__}, SciPy {scipy.__version__}"
    return [*found, ("unbraid", versions)]


def fitted_samples(subject: Subject) -> Problem:
    """The samples of the fit where it remembers them, else those of the page."""
    remembered = None if subject.fit is None else subject.fit.problem
    return subject.whole if remembered is None else remembered


def python_code(subject: Subject) -> str:
    """Python code that repeats the fit, as far as it is known."""
    problem = fitted_samples(subject)
    arrays = [(name, getattr(problem, name)) for name in ("X", "F", "J")]
    shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays if array is not None)
    given = ["X", *(f"{name}={name}" for name, array in arrays[1:] if array is not None)]
    asked = None if subject.fit is None else subject.fit.asked
    robust = asked is not None and asked.loss != "squared"  # which gives samples weight 0
    weighted = problem.weights is not None and not (robust and bool(np.isin(problem.weights, (0.0, 1.0)).all()))
    given += ["weights=weights"] if weighted else []
    given += [] if problem.complete else ['missing="mask"']
    given += [
        f"{what}={names_code(names) if len(names) <= MOST_WRITTEN else what}" for what, names in given_names(problem)
    ]
    lines = ["import unbraid as ub", "", f"# your samples: {shapes}", call_code("problem = ub.Problem", given)]
    if asked is None:
        return "\n".join(lines)
    return "\n".join([*lines, *call(asked), 'fit.report("report.html")'])


def call(asked: Request) -> list[str]:
    """The lines that call `decouple`, with a remark where something cannot be written down."""
    arguments = [f"rank={asked.rank!r}"]
    remarks = []
    if asked.basis is not None:
        arguments.append(f"basis=ub.{asked.basis!r}")
    if asked.constraint is not None:
        arguments.append(f"constraint={shape_code(asked.constraint)}")
    if asked.method is not None:
        code, complete = method_code(asked.method)
        arguments.append(f"method={code}")
        remarks += [] if complete else ["# the method had further settings"]
    if asked.loss != "squared":
        arguments.append(f"loss={asked.loss!r}".replace("'", '"'))
    if asked.polish is not None:
        arguments.append(f"polish={asked.polish}")
    arguments.append(f"starts={asked.starts}")
    if asked.continuation != "auto":
        arguments.append(f'continuation="{asked.continuation}"')
    if asked.has_init:
        arguments.append("init=model")
        remarks.append("# model: the one that the fit began with")
    if asked.seed is not None:
        arguments.append(f"rng={asked.seed}")
    elif not asked.has_init:
        remarks.append("# the seed of this fit is not known; with rng=0, say, the next one can be repeated")
    return [*remarks, call_code("fit = ub.decouple", ["problem", *arguments])]


LONGEST_LINE = 88
"""Letters of a line of code."""
MOST_WRITTEN = 60
"""Names that are written down; of more, the code has a variable."""


def call_code(function: str, arguments: Sequence[str]) -> str:
    """A call in one line, or in a line an argument where that would be too long."""
    line = f"{function}({', '.join(arguments)})"
    return line if len(line) <= LONGEST_LINE else f"{function}(\n" + "".join(f"    {one},\n" for one in arguments) + ")"


def given_names(problem: Problem) -> list[tuple[str, tuple[str, ...]]]:
    """The names of inputs and of outputs, by the argument that gives them, where the samples have any."""
    both = (("input_names", problem.input_names), ("output_names", problem.output_names))
    return [(what, names) for what, names in both if names is not None]


def names_code(names: Sequence[str]) -> str:
    """Names as a list in Python code, in several lines where they are many."""
    lines = [""]
    for name in names:
        quoted = json.dumps(name, ensure_ascii=False)
        if lines[-1] and len(lines[-1]) + len(quoted) > LONGEST_LINE - 12:
            lines.append("")
        lines[-1] += f"{', ' if lines[-1] else ''}{quoted}"
    if len(lines) == 1 and len(lines[0]) <= LONGEST_LINE - 24:
        return f"[{lines[0]}]"
    return "[\n" + "".join(f"        {line},\n" for line in lines) + "    ]"


def shape_code(constraint: Any) -> str:
    """A constraint, or a list of them, as Python code."""
    if isinstance(constraint, Sequence):
        return "[" + ", ".join("None" if one is None else f"ub.{one!r}" for one in constraint) + "]"
    return f"ub.{constraint!r}"


def method_code(method: Method) -> tuple[str, bool]:
    """The call that makes a method, as Python code, and whether it tells everything."""
    make = getattr(methods, method.name, None)
    if make is None:
        return f"ub.methods.{method.name}()", False
    known = {
        "coupling": getattr(method.coupling, "value", None),
        "max_sweeps": method.stopping.max_sweeps,
        "tolerance": method.stopping.tolerance,
        "target": method.stopping.target,
        "max_seconds": method.stopping.max_seconds,
        "polish": method.polish is not None,
        "max_steps": None if method.polish is None else method.polish.stopping.max_sweeps,
        "evenness": method.evenness,
        "scaled": method.scaled,
    }
    offered = {name: known[name] for name in inspect.signature(make).parameters if known.get(name) is not None}
    chosen: dict[str, Any] = {}
    for name, value in offered.items():
        more = {**chosen, name: value}
        if count_agreeing(make(**more), method) > count_agreeing(make(**chosen), method):
            chosen = more
    code = ", ".join(f"{name}={value!r}" for name, value in chosen.items())
    return f"ub.methods.{method.name}({code})", bool(replace(make(**chosen), basis=method.basis) == method)


def count_agreeing(one: Method, other: Method) -> int:
    """In how many settings two methods agree."""
    first, second = settings_of(asdict(one)), settings_of(asdict(other))
    return sum(name in second and second[name] == value for name, value in first.items())


def settings_of(nested: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """The settings in nested dictionaries, by full names: 'stopping.tolerance'."""
    found = {}
    for name, value in nested.items():
        inner = settings_of(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
        found.update(inner)
    return found
