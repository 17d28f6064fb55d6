"""How the command line fails: with one sentence, and a code that scripts can read."""

from __future__ import annotations

import re
import sys
from typing import Any, NoReturn

import click

from unbraid.errors import UnbraidError
from unbraid.files import reason

WRONG_INPUT = 2
INTERRUPTED = 130
"""As shells report a program that Ctrl-C has ended."""


class SentenceGroup(click.Group):
    """A group whose commands report wrong usage, files and data in one sentence, without a traceback."""

    def main(self, *args: Any, **settings: Any) -> NoReturn:
        """Run and exit."""
        try:
            code = super().main(*args, **{**settings, "standalone_mode": False})
        except click.Abort:
            fail("Interrupted before there was anything to keep: no file was written.", INTERRUPTED)
        except click.ClickException as error:
            fail(error.format_message(), WRONG_INPUT)
        except UnbraidError as error:
            fail(str(error), WRONG_INPUT)
        except MemoryError:
            fail("There is not enough memory for this: use fewer samples or fewer starts.", WRONG_INPUT)
        except OSError as error:
            fail(f"The system refused{f' {error.filename}' if error.filename else ''}: {reason(error)}.", WRONG_INPUT)
        sys.exit(code if isinstance(code, int) else 0)


IN_OPTIONS = {
    r"use Problem\.from_paper_layout(\(X, F, J\))?": "add --layout samples-last",
    r"use Problem\(X, F, J\)": "use --layout samples-first",
    r"give J \(S, n, m\) as well, or let Problem\.from_function.*": "give J as well, or use --method default.",
}
"""What the library says to those who call it, and what it means on the command line."""


def fail(message: str, code: int) -> NoReturn:
    """Say it on stderr, in one line, and exit."""
    click.echo(f"Error: {in_options(' '.join(message.split()))}", err=True)
    sys.exit(code)


def in_options(message: str) -> str:
    """A message of the library, with options where it speaks of arguments.

    Examples
    --------
    >>> in_options("The budget ran out: raise `max_sweeps`.")
    'The budget ran out: raise --max-sweeps.'
    """
    for said, option in IN_OPTIONS.items():
        message = re.sub(said, option, message)
    return re.sub(r"`(\w+)`", lambda name: "--" + name[1].replace("_", "-"), message)
