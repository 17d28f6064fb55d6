"""The command line. Results go to stdout; errors are one sentence on stderr and exit code 2."""

from __future__ import annotations

import contextlib
import sys

import click

from unbraid.cli import compare, demo, fit, inspect, predict, report, reproduce
from unbraid.cli.errors import SentenceGroup
from unbraid.version import __version__


@click.group(cls=SentenceGroup, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="unbraid", message="%(prog)s %(version)s")
@click.pass_context
def app(context: click.Context) -> None:
    """Pull a multivariate function apart into univariate strands: f(x) = W1 g(W0 x) + bias, nearly."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


for module in (demo, fit, report, predict, inspect, reproduce, compare):
    app.add_command(module.command)


def main() -> None:
    """Run the command `unbraid`."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError):  # a letter that the terminal lacks is no reason to fail
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    app.main(prog_name="unbraid")


__all__ = ["app", "main"]
