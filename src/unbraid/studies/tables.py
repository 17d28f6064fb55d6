"""Rows of numbers, and the tables, figures and files that are made of them."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from unbraid.plots.panels import settle_layout
from unbraid.runtime.files import replacing
from unbraid.studies.tasks import Rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def values(rows: Rows, column: str, **where: Any) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """A column of the rows that have the given entries in other columns, as an array."""
    return np.array(
        [row[column] for row in rows if all(row[key] == value for key, value in where.items())], dtype=float
    )


def distinct(rows: Rows, column: str) -> list[Any]:
    """The entries of a column, each once, sorted."""
    return sorted({row[column] for row in rows})


def distinct_names(rows: Rows, column: str) -> list[str]:
    """The names in a column, each once, in the order in which they first occur."""
    return list(dict.fromkeys(row[column] for row in rows))


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def write_bytes(path: Path, content: bytes) -> None:
    """Write the content to a file, whole or not at all."""
    with replacing(path) as file:
        file.write(content)


def write_csv(path: Path, rows: Rows) -> Path:
    """Write the rows as a table with a header, every number with the digits that give it back; returns the path."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_bytes(path, text.getvalue().encode())
    return path


def write_figure(stem: Path, figure: Figure) -> list[Path]:
    """Write a figure as SVG and PNG and return the paths; the same figure gives the same bytes."""
    from matplotlib import rc_context

    paths = [stem.with_suffix(".svg"), stem.with_suffix(".png")]
    settle_layout(figure)
    with rc_context({"svg.hashsalt": stem.name, "svg.fonttype": "none"}):
        for path in paths:
            with replacing(path) as file:
                metadata = {"Date": None} if path.suffix == ".svg" else None
                figure.savefig(file, format=path.suffix[1:], dpi=130, metadata=metadata)
    return paths
