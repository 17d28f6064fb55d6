"""`unbraid completion`: what makes a shell's Tab key know the commands, their options and their files."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from unbraid.cli.output import say

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_UNBRAID_COMPLETE"
"""By this the script asks the command for answers."""
EXAMPLES = """\b
Examples, each once and then in a new shell:
  unbraid completion bash >> ~/.bashrc
  unbraid completion zsh >> ~/.zshrc        (after the line with compinit)
  unbraid completion fish > ~/.config/fish/completions/unbraid.fish
"""


@click.command("completion", short_help="Let the Tab key complete what you type.", epilog=EXAMPLES)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the script that lets the Tab key of SHELL complete commands, options, their values and files."""
    kind = get_completion_class(shell)
    assert kind is not None
    say(kind(context.find_root().command, {}, "unbraid", VARIABLE).source().rstrip())
