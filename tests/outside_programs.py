"""Programs that tests need and a machine may lack: compilers of C, and Octave."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

OCTAVE = shutil.which("octave-cli") or shutil.which("octave")
STRICT = ("-pedantic", "-Wall", "-Wextra", "-Werror")
C99, CPP11 = ("-std=c99", *STRICT), ("-x", "c++", "-std=c++11", *STRICT)


def needs(*programs: str | None, of: str) -> pytest.MarkDecorator:
    """Skip where a program is missing, unless UNBRAID_REQUIRE_<of> is 1: it fails then."""
    missing = any(one is None or shutil.which(one) is None for one in programs)
    required = os.environ.get(f"UNBRAID_REQUIRE_{of}") == "1"
    reason = "octave is not installed (Debian: octave)" if of == "OCTAVE" else "gcc and clang are not installed"
    return pytest.mark.skipif(missing and not required, reason=reason)


needs_octave = needs(OCTAVE, of="OCTAVE")
needs_compilers = needs("gcc", "g++", "clang", of="COMPILERS")


def run(command: list[str], folder: Path) -> str:
    """What a program prints on stdout; it must not fail."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout


def octave(script: str, folder: Path) -> str:
    """What Octave prints when it runs a script in a folder; it must not warn."""
    assert OCTAVE is not None, "octave is not installed: apt-get install octave"
    command = [OCTAVE, "--quiet", "--no-gui", "--no-init-file", "--no-history", "--eval", script]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr, done.stderr
    return done.stdout
