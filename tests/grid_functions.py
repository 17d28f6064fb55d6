"""What workers are asked to do in tests/runtime: a module that they import in no time."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from unbraid.studies.tasks import Rows


def dying_once(number: int, marker: str) -> Rows:
    """Its first worker dies of it."""
    try:
        Path(marker).touch(exist_ok=False)
    except FileExistsError:
        return [{"number": number}]
    os.kill(os.getpid(), signal.SIGKILL)
    return []


def dying(number: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def marked(folder: str, number: int) -> int:
    (Path(folder) / f"{number}").touch()
    time.sleep(0.5)
    return number


def waiting(seconds: float) -> Rows:
    time.sleep(seconds)
    return [{"seconds": seconds}]


def missing() -> None:
    raise ModuleNotFoundError("No module named 'unbraid'")
