"""What the command `unbraid` starts with: Ctrl-C is answered with a sentence even while Python is still importing.

This stands beside the package because importing anything of the package imports all that the library needs first.
"""

import os
import signal
import sys
from types import FrameType


def main() -> None:
    """Run the command `unbraid`."""
    python_hears = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    try:
        if python_hears:
            signal.signal(signal.SIGINT, leave)
        from unbraid.cli import main as run

        if python_hears:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        run()
    except KeyboardInterrupt:
        leave()


def leave(number: int = signal.SIGINT, frame: FrameType | None = None) -> None:
    """Say that nothing was done, and exit at once: a compiled module that is imported can make an error of Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.stderr.write("\nError: Interrupted before there was anything to keep: no file was written.\n")
    sys.stderr.flush()
    os._exit(130)


if __name__ == "__main__":
    main()
