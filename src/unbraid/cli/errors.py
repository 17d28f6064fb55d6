"""How the command line ends: with a code that scripts can read, and one sentence where something is wrong."""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

import click

from unbraid.data.checks import DROP, ENCODE, MASK
from unbraid.errors import UnbraidError
from unbraid.runtime.files import why_refused
from unbraid.runtime.text import printable

WRONG_INPUT = 2
INTERRUPTED = 130
"""As shells report a program that Ctrl-C has ended."""
CLOSED = 141
"""As shells report a program whose reader, such as head, has gone."""


KEPT_SENTENCE = "unbraid.kept"
"""Under this name click's context has what a command has to say when Ctrl-C ends it."""


class ReaderGoneError(Exception):
    """Nobody reads what is printed any more. Not an OSError, which click would answer itself."""


class SentenceGroup(click.Group):
    """A group whose commands report wrong usage, files and data in one sentence, without a traceback."""

    def main(self, *args: Any, **settings: Any) -> NoReturn:
        """Run a command and exit: with one sentence on stderr where something is wrong."""
        try:
            code = super().main(*args, **{**settings, "standalone_mode": False})
            with reader_watched():
                flush(sys.stdout)
        except click.Abort:
            fail("Interrupted before there was anything to keep: no file was written.", INTERRUPTED)
        except click.ClickException as error:
            fail(error.format_message(), WRONG_INPUT)
        except UnbraidError as error:
            fail(str(error), WRONG_INPUT)
        except MemoryError:
            fail("There is not enough memory for this: use a lower rank, fewer samples or fewer starts.", WRONG_INPUT)
        except ReaderGoneError:
            leave(CLOSED)
        except OSError as error:
            what = f" {error.filename!s:.200}" if error.filename else ""
            fail(f"The system refused{what}: {why_refused(error)}.", WRONG_INPUT)
        sys.exit(code if isinstance(code, int) else 0)

    def make_context(self, *args: Any, **settings: Any) -> click.Context:
        """Read the command's line; a help that it asks for is printed here."""
        with reader_watched():
            return super().make_context(*args, **settings)

    def invoke(self, ctx: click.Context) -> Any:
        """Do what the line asks for. Ctrl-C is answered with what `kept_on_interrupt` has to say, if anything."""
        try:
            with reader_watched(), imports_watched():
                return super().invoke(ctx)
        except KeyboardInterrupt:
            said = ctx.meta[KEPT_SENTENCE]() if KEPT_SENTENCE in ctx.meta else None
            if said is None:
                raise  # click makes an Abort of it, which `main` answers
            fail(said, INTERRUPTED)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in the order they were added, which is the order a newcomer needs them in."""
        return list(self.commands)


@contextmanager
def kept_on_interrupt(tell: Callable[[], str | None]) -> Iterator[None]:
    """Let Ctrl-C in this block be answered with the sentence that `tell` makes then; None: nothing is kept so far.

    `SentenceGroup.invoke` is the one place that answers, so the sentence before comes back only where the block ends
    well.
    """
    meta = click.get_current_context().meta
    before = meta.get(KEPT_SENTENCE, lambda: None)
    meta[KEPT_SENTENCE] = tell
    yield
    meta[KEPT_SENTENCE] = before


def file_is_there(what: str, path: object) -> None:
    """From now on, let Ctrl-C be answered with where the command's file is."""
    click.get_current_context().meta[KEPT_SENTENCE] = lambda: f"Interrupted: the {what} is there, in {path}."


@contextmanager
def reader_watched() -> Iterator[None]:
    """Raise `ReaderGoneError` where a pipe's reader has gone, to tell that from what else a system can refuse."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.EPIPE:
            raise ReaderGoneError from error
        raise


@contextmanager
def imports_watched() -> Iterator[None]:
    """Raise `KeyboardInterrupt` where Ctrl-C came while a compiled module was imported, which makes an error of it."""
    try:
        yield
    except Exception as error:
        link: BaseException | None = error
        while link is not None:
            before = link.__cause__ or link.__context__
            if isinstance(link, ImportError) and isinstance(before, KeyboardInterrupt):
                raise before from error
            link = before
        raise


IN_OPTIONS = {
    r",? or raise max_memory where there is more": "",
    r"use Problem\.from_paper_layout(\(X, F, J\))?": "add --layout samples-last",
    r"add polish=True, whose .* do, or leave out the method": "leave out --method",
    r"give checkpoint another path": "give --checkpoint another name",
    r"leave out checkpoint": "leave out --checkpoint",
    r"fit without `constraint`": "fit without the shape",
    re.escape(MASK): "add --missing mask",
    re.escape(DROP): "add --missing drop",
    re.escape(ENCODE): "add --categories",
    r'use loss="huber"': "use --loss huber",
    r"pass ([FJ])=None": r"leave \1 out",
    r"use Problem\(X, F, J\)": "use --layout samples-first",
    r"give J \(S, n, m\) as well, or let Problem\.from_function.*": "give J as well, or use --method default.",
}
"""What the library says to those who call it, and what it means on the command line."""


def fail(message: str, code: int) -> NoReturn:
    """Print a message on stderr, in one line, and exit with a code."""
    with suppress(OSError):  # nobody may be there to read it; the code says it too
        click.echo(f"Error: {printable(in_options(' '.join(message.split())))}", err=True)
    leave(code)


def leave(code: int) -> NoReturn:
    """Exit with a code, and let Python not try again to print what could not be printed."""
    for stream in (sys.stdout, sys.stderr):
        try:
            flush(stream)
        except (OSError, ValueError):
            with suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    sys.exit(code)


def flush(stream: Any) -> None:
    """Print what is still held back; a program may have been started without the stream."""
    if stream is not None:
        stream.flush()


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
