"""What is made of the cells of a table that are no numbers: which columns, which rows, and what is told about it.

Everything that stands in the way is told at once, with counts and what each option would do about it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from unbraid.data.checks import DROP, ENCODE, MASK, counted
from unbraid.data.encoding import MOST_LEVELS, EncodedColumn, Encoding
from unbraid.errors import FileError
from unbraid.kernels.arrays import Array, BoolArray
from unbraid.reading.cells import Cells
from unbraid.runtime.text import name_list, quoted_name


@dataclass(frozen=True)
class Wanted:
    """What is wanted of a table: columns of inputs and of all else, and what may be done about gaps and texts.

    `open` says that inputs were not named: columns that cannot be inputs are then left out. `gappy` are the columns
    of outputs and Jacobians, whose gaps may stand for what is not known.
    """

    inputs: tuple[str, ...]
    others: tuple[str, ...]
    gappy: frozenset[str]
    open: bool
    missing: str
    categories: bool
    encoding: Encoding | None = None


@dataclass(frozen=True)
class Settled:
    """What has been made of a table.

    Attributes
    ----------
    X
        (S, m), the inputs.
    others
        (S, ·), the columns of all else, NaN where they are not known.
    encoding
        How columns became inputs.
    told
        What was left out or encoded, in a few words each.
    """

    X: Array
    others: Array
    encoding: Encoding
    told: tuple[str, ...]


def settle(path: Path, cells: Sequence[Cells], wanted: Wanted) -> Settled:
    """Make samples of the cells of the wanted columns, or say all that stands in the way."""
    by_name = {one.name: one for one in cells}
    told: list[str] = []
    inputs = [by_name[name] for name in wanted.inputs]
    if wanted.categories:
        inputs = [one.as_texts() if one.of_texts and not one.cure else one for one in inputs]
    if wanted.open:
        inputs = leave_out(inputs, wanted, told)
    if not inputs:
        raise FileError(f"{path} has no column of numbers that could be an input: name them with `inputs`.")
    chosen = [*inputs, *(by_name[name] for name in wanted.others)]
    texts = [one for one in inputs if one.of_texts and wanted.categories and not one.cure]
    coded = {one.name for one in texts}
    numbers = [one for one in chosen if one.name not in coded]
    problems = [*in_words(numbers, wanted), *strange_texts(texts)]
    keep = rows_to_keep(numbers, texts, wanted)
    gone = int(np.count_nonzero(~keep))
    if gone and wanted.missing != "drop":
        problems += gaps_in_words(numbers, texts, wanted)
    if not keep.any() and not problems:
        problems.append(f"no row is without gaps: {fullest(chosen)}")
    if problems:
        said = name_list(problems, len(problems), between="; ")
        raise FileError(f"{path} cannot be used as it is: {'; '.join([said, *told])}.")
    told += [f"{counted(gone, 'row')} with gaps left out"] if gone else []
    single = [one for one in texts if wanted.encoding is None and len(levels_in(one, keep)) < 2]
    if single:
        told.append(f"left out for saying the same in all rows that are left: {listed(single)}")
        alone = {one.name for one in single}
        inputs, texts = ([one for one in some if one.name not in alone] for some in (inputs, texts))
        if not inputs:
            raise FileError(f"{path} has no input that varies in the rows that are left: give more rows.")
    told_by = {} if wanted.encoding is None else {column.name: column for column in wanted.encoding.columns}
    columns = tuple(
        encoded(one, told_by.get(one.name), keep) if one.name in coded else EncodedColumn(one.name) for one in inputs
    )
    check_levels(path, [pair for pair in zip(columns, inputs, strict=True) if pair[0].levels], keep)
    told += [f"{quoted_name(one.name)} as indicators of {one.examples()}" for one in texts]
    X = np.hstack([in_numbers(column, one, keep) for column, one in zip(columns, inputs, strict=True)])
    others = [by_name[name].numbers[keep] for name in wanted.others]
    return Settled(X, np.stack(others, axis=1), Encoding(columns), tuple(told))


def count_strange(cells: Sequence[Cells], wanted: Wanted) -> int:
    """How many cells hold no finite number; of outputs that may have gaps, neither a gap."""
    masked = wanted.gappy if wanted.missing == "mask" else ()
    strange = [~np.isfinite(one.numbers) & ~(one.is_gap & (one.name in masked)) for one in cells]
    return sum(int(np.count_nonzero(one)) for one in strange)


def leave_out(inputs: Sequence[Cells], wanted: Wanted, told: list[str]) -> list[Cells]:
    """The columns that can be inputs, where none were named; what becomes of the others is told."""
    empty = [one for one in inputs if one.empty]
    texts = [one for one in inputs if one.of_texts and not one.empty and not one.cure]
    encodable = [one for one in texts if 2 <= len(one.levels) <= MOST_LEVELS]
    away = [one for one in texts if not (wanted.categories and 2 <= len(one.levels) <= MOST_LEVELS)]
    if away:
        advice = "" if wanted.categories or not encodable else f" ({ENCODE} to encode {listed(encodable)})"
        told.append(f"left out for being text: {listed(away)}{advice}")
    if empty:
        told.append(f"left out for being empty: {listed(empty)}")
    gone = {one.name for one in (*away, *empty)}
    return [one for one in inputs if one.name not in gone]


def in_words(numbers: Sequence[Cells], wanted: Wanted) -> list[str]:
    """What is wrong with columns that should hold numbers: texts in them, and infinite ones."""
    problems, inputs = [], set(wanted.inputs)
    for one in numbers:
        where = first_row(one.is_text)
        if one.of_texts:
            levels = len(one.levels)
            encodable = one.name in inputs and 2 <= levels <= MOST_LEVELS
            cure = f"{ENCODE} to make indicators of it" if encodable else "leave it out"
            cure = "outputs, Jacobians and weights are numbers" if one.name not in inputs else cure
            problems.append(f"column {quoted_name(one.name)} holds texts ({one.examples()}): {one.cure or cure}")
        elif one.texts and (wanted.missing != "drop" or one.cure):  # numbers after all are not left out
            cells = counted(len(one.texts), "cell")
            problems.append(
                f"{cells} of column {quoted_name(one.name)} {'is' if len(one.texts) == 1 else 'are'} no number"
                f"{'' if len(one.texts) == 1 else 's'} ({one.examples()}; the first in row {where}): "
                f"{one.cure or f'repair them, or {DROP} to leave such rows out'}"
            )
        if one.is_infinite.any() and wanted.missing != "drop":
            problems.append(
                f"column {quoted_name(one.name)} is infinite in {counted(int(one.is_infinite.sum()), 'row')}, the "
                f"first of which is row {first_row(one.is_infinite)}: repair that, or {DROP} to leave such rows out"
            )
    return problems


def strange_texts(texts: Sequence[Cells]) -> list[str]:
    """What is wrong with columns of texts that are to be encoded."""
    return [
        f"column {quoted_name(one.name)} holds {counted(len(one.levels), 'different text')}, and from 2 to "
        f"{MOST_LEVELS} can be encoded: leave it out"
        for one in texts
        if not 2 <= len(one.levels) <= MOST_LEVELS
    ]


def rows_to_keep(numbers: Sequence[Cells], texts: Sequence[Cells], wanted: Wanted) -> BoolArray:
    """Which rows have all that is needed, (S,): with "mask", outputs and Jacobians may be unknown."""
    keep = np.ones(len(numbers[0].numbers), dtype=bool)
    for one in numbers:
        masked = wanted.missing == "mask" and one.name in wanted.gappy
        keep &= ~one.is_infinite if masked else np.isfinite(one.numbers)
    for one in texts:
        keep &= one.is_text
    return keep


def gaps_in_words(numbers: Sequence[Cells], texts: Sequence[Cells], wanted: Wanted) -> list[str]:
    """How many gaps there are, column by column, and what can be done about them; nothing where there are none."""
    gappy = [one for one in numbers if one.is_gap.any() and not one.of_texts]
    gappy = [one for one in gappy if not (wanted.missing == "mask" and one.name in wanted.gappy)]
    counts = {one.name: int(one.is_gap.sum()) for one in gappy}
    counts |= {one.name: int((~one.is_text).sum()) for one in texts if not one.is_text.all()}
    if not counts:
        return []
    rows = np.any([one.is_gap for one in gappy] + [~one.is_text for one in texts], axis=0)
    cells = name_list((f"{quoted_name(name)} {count}" for name, count in counts.items()), len(counts))
    only_outputs = wanted.gappy.issuperset(counts)
    mask = f", or {MASK} where that stands for what is not known" if only_outputs else ""
    mask = ", since inputs and weights have to be known" if wanted.missing == "mask" else mask
    return [
        f"{counted(int(rows.sum()), 'row')} of {len(rows)} {'has' if rows.sum() == 1 else 'have'} gaps (by column: "
        f"{cells}; the first is row {first_row(rows)}): {DROP} to leave them out{mask}"
    ]


def encoded(one: Cells, known: EncodedColumn | None, keep: BoolArray) -> EncodedColumn:
    """How a column of texts is encoded: as a model tells it, or by what it says."""
    if known is not None and known.levels:
        return known
    return EncodedColumn.of_texts(one.name, (one.texts[int(row)] for row in np.flatnonzero(keep)))


def levels_in(one: Cells, keep: BoolArray) -> set[str]:
    """The different texts of a column in rows that are kept."""
    return {one.texts[int(row)] for row in np.flatnonzero(keep)}


def check_levels(path: Path, texts: Sequence[tuple[EncodedColumn, Cells]], keep: BoolArray) -> None:
    """Refuse texts that a model does not know, in rows that are kept."""
    rows = [int(row) for row in np.flatnonzero(keep)]
    strange = [text for column, one in texts for text in column.unknown([one.texts[row] for row in rows])]
    if strange:
        said = name_list(map(quoted_name, strange), len(strange))
        raise FileError(f"{path} says {said}, which the model does not know: repair or remove such rows.")


def in_numbers(column: EncodedColumn, one: Cells, rows: BoolArray) -> Array:
    """The inputs (S, k) of some rows of a column."""
    if column.levels is None:
        return one.numbers[rows, None]
    return column.indicators([one.texts[int(row)] for row in np.flatnonzero(rows)])


def fullest(cells: Sequence[Cells]) -> str:
    """Which column has most gaps, with how many."""
    worst = max(cells, key=lambda one: int(one.is_gap.sum()))
    return f"column {quoted_name(worst.name)} has {counted(int(worst.is_gap.sum()), 'gap')}: leave it out"


def first_row(which: BoolArray) -> int:
    """The number of the first row, as people count."""
    return int(np.argmax(which)) + 1


def listed(cells: Sequence[Cells]) -> str:
    """The names of columns."""
    return name_list((quoted_name(one.name) for one in cells), len(cells))
