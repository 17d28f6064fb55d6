"""What the command `unbraid` starts with: Ctrl-C is answered with a sentence even while Python is still importing.

This stands beside the package because importing anything of the package imports all that the library needs first.
"""

import signal
import sys


def main() -> None:
    """Run the command `unbraid`."""
    try:
        from unbraid.cli import main as run

        run()
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # once is enough
        sys.stderr.write("\nError: Interrupted before there was anything to keep: no file was written.\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
