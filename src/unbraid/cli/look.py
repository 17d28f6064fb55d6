"""`unbraid look`: what is odd about the samples in a file, before they are fitted."""

from __future__ import annotations

from pathlib import Path

import click

from unbraid.cli.errors import in_options
from unbraid.cli.options.data import ask_for_outputs, sample_options
from unbraid.cli.output import json_option, say, say_document
from unbraid.data.checks import counted
from unbraid.data.looking.look import Look
from unbraid.reading.columns import Columns
from unbraid.reading.problems import read_samples
from unbraid.runtime.text import MOST_NAMES

EXAMPLES = """\b
Examples:
  unbraid look samples.npz
  unbraid look samples.csv --outputs y1,y2
  unbraid look samples.csv --outputs y1,y2 --missing drop --categories
"""


@click.command("look", short_help="Say what is odd about the samples in a file.", epilog=EXAMPLES)
@click.argument("data", type=click.Path(path_type=Path))
@sample_options
@json_option
def command(data: Path, columns: Columns, as_json: bool) -> None:
    """Say what is odd about the samples in DATA, and what to do about it, before they are fitted.

    Columns that do not vary or are sums of others, copies, far values and long tails, inputs of a few values, what is
    missing, too few samples, and Jacobians that are not those of the values. DATA is what `unbraid fit` takes.
    """
    samples = read_samples(data, ask_for_outputs(data, columns, as_json))
    look = samples.problem.look()
    if as_json:
        findings = [{"kind": one.kind, "columns": one.columns, "said": one.said, "cure": one.cure} for one in look]
        say_document({"data": data, "samples": samples.problem.S, "taken": in_options(samples.taken), "odd": findings})
        return
    say(f"Data:   {counted(samples.problem.S, 'sample')}, {in_options(samples.taken)}.")
    say_look(look)
    if not len(look):
        say("Look:   nothing is odd about them.")


def say_look(look: Look) -> None:
    """Print what is odd, a paragraph each; of many findings of one kind the first, and how many more there are."""
    found: dict[str, list[str]] = {}
    for one in look:
        found.setdefault(one.kind, []).append(in_options(str(one)))
    for kind, texts in found.items():
        for text in texts[:MOST_NAMES]:
            say(f"Look:   {text}")
        if len(texts) > MOST_NAMES:
            say(f"Look:   {counted(len(texts) - MOST_NAMES, 'more finding')} of this kind, {kind}: --json lists all.")
