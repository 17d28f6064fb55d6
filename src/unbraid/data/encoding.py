"""How columns of a table become inputs: numbers as they are, texts as indicators of what they say.

A column of texts with levels l_0, l_1, …, l_k, the most frequent one first, becomes k inputs, the i-th of which is 1
where the text is l_i and 0 elsewhere. l_0 is the reference: it has no input of its own, since it would be 1 minus the
sum of the others. An input is named after what it says, ``fuel=diesel``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from unbraid.data.checks import numbers
from unbraid.errors import DataError
from unbraid.kernels.arrays import Array

MOST_LEVELS = 50
"""Levels of a column that is encoded, at most: what has more is a name or a remark."""


@dataclass(frozen=True)
class EncodedColumn:
    """A column of a table; `levels`: the texts that it may hold, the reference first, or None where it has numbers."""

    name: str
    levels: tuple[str, ...] | None = None

    @classmethod
    def of_texts(cls, name: str, texts: Iterable[str]) -> Self:
        """The column of some texts: the most frequent is the reference, the others follow in their order."""
        counts = Counter(texts)
        reference = min(counts, key=lambda text: (-counts[text], text))
        return cls(name, (reference, *sorted(set(counts) - {reference})))

    @property
    def input_names(self) -> tuple[str, ...]:
        """What its inputs are called."""
        return (self.name,) if self.levels is None else tuple(f"{self.name}={level}" for level in self.levels[1:])

    def indicators(self, texts: Sequence[str]) -> Array:
        """The inputs (S, k) that stand for texts, all of which are levels."""
        assert self.levels is not None
        number = {level: k for k, level in enumerate(self.levels)}
        which = np.array([number[text] for text in texts], dtype=np.intp)
        return np.eye(len(self.levels))[which, 1:]

    def numbers(self, given: Iterable[Any]) -> Array:
        """The inputs (S, k) of what a column of a data frame holds."""
        if self.levels is None:
            return numbers(f"X[{self.name!r}]", list(given))[:, None]
        texts = [str(one) for one in given]
        unknown = self.unknown(texts)
        if unknown:
            raise DataError(f"Column {self.name!r} says {unknown[0]!r}, and the model knows {', '.join(self.levels)}.")
        return self.indicators(texts)

    def unknown(self, texts: Sequence[str]) -> list[str]:
        """Texts that are no levels, each once, in the order in which they come."""
        return [text for text in dict.fromkeys(texts) if text not in (self.levels or ())]


@dataclass(frozen=True)
class Encoding:
    """How the columns of a table become the inputs of a model, in their order."""

    columns: tuple[EncodedColumn, ...]

    @classmethod
    def of_numbers(cls, names: Iterable[str]) -> Self:
        """Columns of numbers, as they are."""
        return cls(tuple(map(EncodedColumn, names)))

    @property
    def input_names(self) -> tuple[str, ...]:
        """What the inputs are called."""
        return tuple(name for column in self.columns for name in column.input_names)

    @property
    def column_names(self) -> tuple[str, ...]:
        """The columns that a table needs to have."""
        return tuple(column.name for column in self.columns)

    def of_labelled(self, given: Any) -> Any:
        """The inputs in a data frame, (S, m), or in a labelled row, (m,), by their names; as it is where it has others.

        One that has some of the columns and lacks others is refused: it would be taken for something else.
        """
        labels = list(given.columns if hasattr(given, "columns") else given.index)
        names = self.column_names if any(name in labels for name in self.column_names) else self.input_names
        lacking = [name for name in names if name not in labels]
        if len(lacking) == len(names):
            return given
        if lacking:
            raise DataError(f"X lacks the column{'s' if len(lacking) > 1 else ''} {', '.join(map(repr, lacking))}.")
        if names == self.input_names:
            return given[list(names)]
        row = not hasattr(given, "columns")
        parts = [column.numbers([given[column.name]] if row else given[column.name]) for column in self.columns]
        X = np.hstack(parts)
        return X[0] if row else X

    def as_json(self) -> list[dict[str, Any]]:
        """Lists, texts and None, for a file."""
        return [{"name": one.name, "levels": None if one.levels is None else list(one.levels)} for one in self.columns]

    @classmethod
    def from_json(cls, given: Any) -> Self:
        """And back; a `DataError` where it is something else."""
        columns = []
        for one in given if isinstance(given, list) else [None]:
            name, levels = (one.get("name"), one.get("levels")) if isinstance(one, dict) else (None, None)
            texts = [] if levels is None else levels
            if not isinstance(name, str) or not isinstance(texts, list) or not all(isinstance(t, str) for t in texts):
                raise DataError("An encoding must be a list of columns, each with a name and its levels.")
            if levels is not None and not 2 <= len(set(texts)) == len(texts) <= MOST_LEVELS:
                raise DataError(f"The levels of column {name!r} must be 2 to {MOST_LEVELS} different texts.")
            columns.append(EncodedColumn(name, None if levels is None else tuple(texts)))
        return cls(tuple(columns))


def is_labelled(given: Any) -> bool:
    """Whether something is a data frame, or a row of one, whose entries have names."""
    if hasattr(given, "sink_parquet"):  # a LazyFrame of polars, which would have to find its columns out
        return False
    return hasattr(given, "columns") or (hasattr(given, "index") and not callable(given.index))
