"""The command line. Results go to stdout; errors are one sentence on stderr and exit code 2.

The top of the library: may import everything; nothing imports it.
"""

from __future__ import annotations

import contextlib
import signal
import sys

import click
from click.shell_completion import get_completion_class

from unbraid.cli import compare, demo, export, fit, formulas, inspect, look, predict, report, reproduce
from unbraid.cli.dynamics import identify, simulate
from unbraid.cli.errors import SentenceGroup
from unbraid.version import __version__

EXAMPLES = """\b
Examples:
  unbraid demo
  unbraid fit samples.npz --rank auto -o model.npz
  unbraid predict model.npz points.npz -o values.npz
See COMMAND --help, docs/command_line.md. Codes: 2 refused, 130 interrupted.
"""
"""A screen has 24 lines, and this help with the command that asks for it fits."""
SHELLS = ("bash", "zsh", "fish")
COMPLETION_VARIABLE = "_UNBRAID_COMPLETE"
"""By this variable of the environment the script of `unbraid completion` asks the command for answers."""
COMPLETION_EXAMPLES = """\b
Examples, each once and then in a new shell:
  unbraid completion bash >> ~/.bashrc
  unbraid completion zsh >> ~/.zshrc        (after the line with compinit)
  unbraid completion fish > ~/.config/fish/completions/unbraid.fish
"""


class FrontPage(SentenceGroup):
    """The group of all commands, whose help has them before all else."""

    def get_help(self, ctx: click.Context) -> str:
        """The help, without the empty lines behind the usage and before the examples: it has to fit a screen."""
        usage, text, *parts, end = super().get_help(ctx).split("\n\n")
        return "\n\n".join([f"{usage}\n{text}", *parts]) + f"\n{end}"

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands, and no options: the text has both."""
        self.format_commands(ctx, formatter)


@click.group(
    cls=FrontPage,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    subcommand_metavar="COMMAND [ARGS]...",
    options_metavar="[--version] [--help]",
    epilog=EXAMPLES,
)
@click.version_option(__version__, prog_name="unbraid", message="%(prog)s %(version)s")
@click.pass_context
def app(context: click.Context) -> None:
    """From samples of f, find W0, W1, curves g: f(x) = W1 g(W0 x) + bias, nearly."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@click.command("completion", short_help="Let the Tab key complete what you type.", epilog=COMPLETION_EXAMPLES)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that lets the Tab key of SHELL complete commands, options, their values and files."""
    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(context.find_root().command, {}, "unbraid", COMPLETION_VARIABLE).source().rstrip())


for module in (
    demo,
    look,
    fit,
    report,
    inspect,
    formulas,
    predict,
    export,
    identify,
    simulate,
    compare,
    reproduce,
):
    app.add_command(module.command)
app.add_command(completion)


def main() -> None:
    """Run the command `unbraid`."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError):  # a letter that the terminal lacks is no reason to fail
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    try:
        app.main(prog_name="unbraid")
    finally:  # all is written and said, and Python, while it ends, would let Ctrl-C change the exit code
        signal.signal(signal.SIGINT, signal.SIG_IGN)


__all__ = ["app", "main"]
