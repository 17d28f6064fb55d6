"""Commands of `unbraid`, run in this process, and what they leave."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from click.testing import CliRunner, Result

from unbraid.cli import app


def run(line: str = "") -> Result:
    return CliRunner().invoke(app, line.split())


def fit(options: str) -> Result:
    return run(f"fit data.npz --rank 3 --starts 2 --max-sweeps 40 {options}")


def refusal(result: Result) -> str:
    """The one line that a refused command prints."""
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.stderr


def files(folder: Path) -> set[str]:
    return {one.name for one in folder.iterdir()}


def load(path: str) -> dict[str, Any]:
    with np.load(path) as file:
        return dict(file)
