"""`unbraid formulas`: closed forms for the branches of a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from unbraid.cli.bars import progress_bar
from unbraid.cli.options.data import OutputFile, check_apart, columns_of_model, named_files, sample_options
from unbraid.cli.output import json_option, print_table, say, say_document
from unbraid.closed import BranchFormulas, Candidate, Formulas, formulas
from unbraid.export import ENDINGS, export_model
from unbraid.reading.columns import Columns
from unbraid.reading.problems import read_samples
from unbraid.results.branches.words import formula_lines
from unbraid.results.model import DecoupledModel

SHOWN = 3
"""Forms of a branch that are printed."""
EXAMPLES = """\b
Examples:
  unbraid formulas model.npz
  unbraid formulas model.npz samples.npz -o formulas.json
"""


@click.command("formulas", short_help="Find closed forms for the branches of a model.", epilog=EXAMPLES)
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("data", type=click.Path(path_type=Path), required=False)
@sample_options
@click.option(
    "-o",
    "--output",
    type=OutputFile(),
    help="Where the model with formulas goes: .npz, .json, or another ending of `unbraid export`.",
)
@json_option
def command(model: Path, data: Path | None, columns: Columns, output: Path | None, as_json: bool) -> None:
    """Find closed forms (sin, exp, tanh, powers, ...) for the branches of MODEL, the best first.

    With the samples in DATA, read as `unbraid fit` reads them, these judge which forms describe a branch within its
    uncertainty, and all parameters are fitted again together; else those within 0.3 % of a curve do. The other branches
    stay curves.
    """
    if output is not None:
        check_apart(output, model, *([] if data is None else [data]), *named_files(columns))
    loaded = DecoupledModel.load(model)
    with progress_bar("Formulas") as callback:
        problem = None
        if data is not None:
            problem = read_samples(data, columns_of_model(loaded, data, columns), callback).problem
        found = formulas(loaded, problem)
    if output is not None and output.suffix.lower() in ENDINGS:
        export_model(found.model, output)
    elif output is not None:
        found.model.save(output)
    if as_json:
        say_document(document(found, model, output))
        return
    rows = [row for one in found for row in branch_rows(one)]
    print_table("Closed forms in u = w0·x, % of a curve's spread", ("branch", "form", "g(u)", "off %", "most %"), rows)
    for line in formula_lines(found.model):
        say(line)
    if found.doubt is not None:
        say(f"But {found.doubt}")
    if output is not None:
        say(f"Model:  {output}")


def branch_rows(found: BranchFormulas) -> list[tuple[str, ...]]:
    """The rows of one branch: its forms, or that it stays a curve."""
    name = str(found.branch + 1)
    within = [one for one in found.candidates if one.within]
    if within:
        return [form_row(name if i == 0 else "", one) for i, one in enumerate(within[:SHOWN])]
    nearest = [form_row("", one, "nearest: ") for one in found.candidates[:1]]
    return [(name, found.unseen or "stays a curve", "", "", ""), *nearest]


def form_row(name: str, one: Candidate, before: str = "") -> tuple[str, ...]:
    """The row of a form."""
    return (name, before + one.formula.form.name, one.words, f"{one.mean:.2g}", f"{one.largest:.2g}")


def document(found: Formulas, model: Path, output: Path | None) -> dict[str, Any]:
    """What `unbraid formulas --json` prints: the forms of every branch, and the model's formulas."""
    branches = [[candidate_document(one) for one in branch.candidates] for branch in found]
    return {
        "model": model,
        "output": output,
        "judged_by_data": found.from_data,
        "doubt": found.doubt,
        "formulas": formula_lines(found.model),
        "branches": branches,
    }


def candidate_document(one: Candidate) -> dict[str, Any]:
    """A form in the document."""
    return {
        "form": one.formula.form.name,
        "parameters": one.formula.parameters,
        "text": one.words,
        "within": one.within,
        "mean": one.mean,
        "largest": one.largest,
        "held_out": one.held_out,
    }
