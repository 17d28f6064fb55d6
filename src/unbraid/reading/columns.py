"""What in a file is what: its columns or arrays, by names, patterns and ranges.

In a table, a text names one column, or several with commas between them. Each is a name, a pattern such as ``x*``, or
a range such as ``x1:x5``, which takes the columns from the first to the last as they stand in the file. Jacobians are
n·m columns, row after row: ∂f_1/∂x_1, ∂f_1/∂x_2, …, ∂f_2/∂x_1, …; or one text with ``{output}`` and ``{input}`` in it,
such as ``d{output}/d{input}``, which is filled in with the names of outputs and inputs. In a file of arrays, a text is
the name of one array.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase

from unbraid.data.checks import Missing, check_missing
from unbraid.data.encoding import Encoding
from unbraid.errors import FileError, SettingError, shown
from unbraid.reading.layout import LAYOUTS
from unbraid.reading.sources import Table
from unbraid.runtime.text import clean_name, name_list

OUTPUT, INPUT = "{output}", "{input}"


@dataclass(frozen=True)
class Columns:
    """How a file of samples is read: what in it is what.

    Attributes
    ----------
    inputs, outputs, jacobians
        The columns of a table, as texts that `choose` understands; in other files the array, if it is not X, F or J.
    weights
        The column, or the array, with one weight a sample; None: none, or the array named weights.
    missing
        Whether NaN and empty cells are refused ("error"), stand for what is not known in outputs and Jacobians
        ("mask"), or have their samples left out ("drop").
    exclude
        Columns of a table that are no inputs, where `inputs` does not say which are.
    encoding
        How texts become inputs, where a model tells it; None: by what the table says.
    categories
        Whether columns of texts become inputs, as indicators of what they say; else they are left out.
    layout
        "samples-first" or "samples-last"; None: by the shapes in MATLAB's files, samples first in all others.
    """

    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    jacobians: tuple[str, ...] = ()
    weights: str | None = None
    missing: Missing = "error"
    layout: str | None = None
    categories: bool = False
    exclude: tuple[str, ...] = ()
    encoding: Encoding | None = None

    def __post_init__(self) -> None:
        check_missing(self.missing)
        if self.layout is not None and self.layout not in LAYOUTS:
            raise SettingError(f"layout must be None, {' or '.join(map(repr, LAYOUTS))}, got {shown(self.layout)}.")


def choose(table: Table, given: Sequence[str], option: str) -> tuple[str, ...]:
    """The columns that are meant by what was given for one of `inputs`, `outputs`, `jacobians` and `weights`."""
    chosen = tuple(
        name for text in given for part in split_list(table, text) for name in match_columns(table, part, option)
    )
    if given and not chosen:
        raise FileError(f"{table.path}: `{option}` names no column: it holds {table.holds()}.")
    twice = [name for name, count in Counter(chosen).items() if count > 1]
    if twice:
        raise FileError(f"{table.path}: `{option}` names the column {clean_name(twice[0])} twice: name it once.")
    for name in chosen:
        if table.times[name] > 1:
            raise FileError(f"{table.path} has {table.times[name]} columns named {clean_name(name)}: rename them.")
    return chosen


def split_list(table: Table, text: str) -> list[str]:
    """The names in a text: all of it where a column has that name, else what stands between commas."""
    if text in table.places:
        return [text]
    return [part.strip() for part in text.split(",") if part.strip()]


def match_columns(table: Table, part: str, option: str) -> Sequence[str]:
    """The columns that one name, pattern or range stands for."""
    if part in table.places:
        return [part]
    ends = [(part[:at], part[at + 1 :]) for at, letter in enumerate(part) if letter == ":"]  # names may have colons too
    for first, last in ends:
        if first in table.places and last in table.places:
            return column_range(table, first, last, option)
    found = [name for name in table.columns if fnmatchcase(name, part)]
    if found:
        return found
    said = f"{clean_name(part)}, which `{option}` names"
    for first, last in ends:
        if first in table.places or last in table.places:
            absent, does = (last, "ends") if first in table.places else (first, "begins")
            said = f"{clean_name(absent) or '(no name)'}, with which the range {clean_name(part)} of `{option}` {does}"
    near = [clean_name(name) for name in get_close_matches(part, table.columns, 1)]
    meant = f" Did you mean {near[0]}?" if near else ""
    raise FileError(f"{table.path} has no column {said}: it holds {table.holds()}.{meant}")


def column_range(table: Table, first: str, last: str, option: str) -> Sequence[str]:
    """The columns from `first` to `last`, as they stand in the file."""
    found = table.columns[table.places[first] : table.places[last] + 1]
    if not found:
        first, last = clean_name(first), clean_name(last)
        raise FileError(
            f"{table.path}: `{option}` names the range {first}:{last}, and {first} comes after {last}: turn it round, "
            f"{last}:{first}, or name the columns one by one."
        )
    return found


def choose_jacobians(
    table: Table, given: Sequence[str], inputs: Sequence[str], outputs: Sequence[str]
) -> tuple[str, ...]:
    """The columns of the Jacobians, n·m names row after row, or none."""
    if any(OUTPUT in text or INPUT in text for text in given):
        if not outputs:
            raise FileError(f"{table.path}: `jacobians` with {OUTPUT} in it needs the names of `outputs`.")
        given = [
            text.replace(OUTPUT, output).replace(INPUT, input_)
            for text in given
            for output in outputs
            for input_ in inputs
        ]
    chosen = choose(table, given, "jacobians")
    m, n = len(inputs), len(outputs)
    if chosen and (len(chosen) != n * m if n else len(chosen) % m):
        wanted = f"{n} outputs and {m} inputs need {n * m}" if n else f"for {m} inputs they are a multiple of {m}"
        raise FileError(
            f"{table.path}: `jacobians` names {len(chosen)} columns, and {wanted}: name them row after row, all "
            f"derivatives of the first output first."
        )
    return chosen


def check_distinct(table: Table, chosen: Sequence[str]) -> None:
    """Refuse a column that was chosen for two things, input and weights, say."""
    twice = [name for name, count in Counter(chosen).items() if count > 1]
    if twice:
        names = name_list(map(clean_name, twice), len(twice))
        raise FileError(
            f"{table.path}: {names} cannot be two of input, output, Jacobian and weights at once: name each column in "
            f"one place."
        )
