"""What kills and Ctrl-C leave behind.

    python benchmarks/kills.py [kills] [interrupts]     50 of each by default

Kills (`kill -9`) come at random moments of `unbraid fit --checkpoint` with a report, of `unbraid reproduce`, and of a
script that calls `select` with a checkpoint, one to three in a row; then the same command runs to its end. The fit and
the selection write their checkpoints after every sweep, and every other kill waits for the next moment at which a file
is being written. Printed are, for each: kills, those of them that left half a file, ends that were compared with a run
that nobody disturbed, how many of them have the same bits in every file that tells no time, and files that the other
run does not have.

Ctrl-C comes at random moments of `unbraid fit`, from the start of Python to the end, in every other run from the first
sweep to the end, and is sent once or twice within half a second. Printed is how the commands ended: before the
command's first line, with exit code 130 before the first sweep was made, with exit code 130 and a model, with exit code
0 since all was done, or otherwise, which is then shown.
"""

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import unbraid as ub

EAGER = "from unbraid.fitting import checkpoint; checkpoint.EVERY, checkpoint.SHARE = 0.0, float('inf')\n"
COMMAND = "from unbraid.cli import main; main()"
SMALL = "from unbraid.cli import reproduce; reproduce.QUICK_MONOTONE_DFS = (8, 12)\n"
SELECT = """
import numpy as np, unbraid as ub
problem = ub.Problem(**np.load("data.npz"))
selection = ub.select(problem, [1, 2, 3], starts=2, rng=0, checkpoint="select.checkpoint")
selection.chosen.fit.model.save("chosen.npz")
np.save("squares.npy", [row.squares for row in selection.rows])
"""
NOTING = """
import sys, unbraid_command
open("begun", "w").close()

class Noting:
    def find_spec(self, name, *_):
        if name == "unbraid.cli":
            sys.meta_path.remove(self)
            from unbraid.solvers.loop import Loop
            advance = Loop.advance
            def noted(self, solver):
                advance(self, solver)
                if self.sweep == 1:
                    open("swept", "w").close()
            Loop.advance = noted

sys.meta_path.insert(0, Noting())
unbraid_command.main()
"""
"""The command `unbraid`, which leaves a file when it begins, and one when a sweep has been made."""


@dataclass(frozen=True)
class Work:
    """Something to kill: the code of a program and its arguments, and the endings of files that tell no time."""

    name: str
    code: str
    line: str = ""
    timeless: tuple[str, ...] = (".npz", ".npy", ".csv", ".json", ".svg", ".png", ".md")

    def start(self, folder: Path) -> subprocess.Popen[str]:
        """Begin it in a folder."""
        return subprocess.Popen(
            [sys.executable, "-c", self.code, *self.line.split()],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def content(self, folder: Path) -> dict[str, bytes]:
        """What the files of a folder hold, but for those that tell times."""
        files = (one for one in folder.rglob("*") if one.is_file())
        return {str(one.relative_to(folder)): one.read_bytes() * one.name.endswith(self.timeless) for one in files}


FIT = "fit data.npz --rank 3 --starts 16 -o model.npz"
KILLED = (
    Work("fit --checkpoint --report", EAGER + COMMAND, FIT + " --checkpoint fit.checkpoint --report report.html"),
    Work("reproduce", SMALL + COMMAND, "reproduce monotone --quick --runs 1 --sweeps 5 --jobs 2 -o paper"),
    Work("select(checkpoint=)", EAGER + SELECT),
)
INTERRUPTED = Work("fit", NOTING, "fit data.npz --rank 3 --starts 300 -o model.npz")


def folders(whole: Path) -> Iterator[Path]:
    """New folders with samples, as many as are asked for."""
    problem, _ = ub.datasets.trig(S=200, rng=0)
    for number in range(10**6):
        folder = whole / str(number)
        folder.mkdir()
        np.savez(folder / "data.npz", X=problem.X, F=problem.F, J=problem.J)  # type: ignore[arg-type]
        yield folder


def kill_again_and_again(work: Work, kills: int, new: Iterator[Path], chance: random.Random) -> None:
    """Kill so often, in folder after folder, and print what the runs that came to an end have left."""
    began, first = time.perf_counter(), next(new)
    work.start(first).communicate()
    seconds, expected = time.perf_counter() - began, work.content(first)
    done = halves = ends = same = 0
    stray: list[str] = []
    while done < kills:
        folder = next(new)
        for _ in range(min(chance.randint(1, 3), kills - done)):
            process = work.start(folder)
            time.sleep(chance.uniform(0.0, seconds))
            if done % 2:
                wait_for_half_a_file(process, folder)
            done += process.poll() is None
            process.kill()
            process.communicate()
            halves += any(name.endswith(".tmp") for name in work.content(folder))
        _, said = work.start(folder).communicate()
        found = work.content(folder)
        stray += sorted(found.keys() - expected.keys())
        ends += 1
        same += {name: found.get(name) for name in expected} == expected
        if said:
            print(said)
    print(f"{work.name:28}{done:8}{halves:10}{ends:8}{same:8}   {', '.join(stray) or 'none'}", flush=True)


def wait_for_half_a_file(process: subprocess.Popen[str], folder: Path) -> None:
    """Wait until something is being written to a file, or the process has ended."""
    while process.poll() is None and not any(folder.rglob("*.tmp")):
        pass


def interrupt(times: int, folder: Path, moment: float, from_first_sweep: bool, chance: random.Random) -> str:
    """Send Ctrl-C to a fit, once or several times, after so many seconds; how it ended."""
    process = INTERRUPTED.start(folder)
    while from_first_sweep and process.poll() is None and not (folder / "swept").exists():
        time.sleep(0.001)
    time.sleep(moment)
    for _ in range(times):
        process.send_signal(signal.SIGINT)
        time.sleep(chance.uniform(0.0, 0.5) if times > 1 else 0.0)
    _, said = process.communicate()
    code, begun, swept = process.returncode, (folder / "begun").exists(), (folder / "swept").exists()
    model = (folder / "model.npz").exists() and ub.DecoupledModel.load(folder / "model.npz").rank == 3
    stray = set(INTERRUPTED.content(folder)) - {"data.npz", "begun", "swept", "model.npz"}
    if not begun:
        return "before its first line"
    if "Traceback" not in said and not stray:
        if (code, model) == (0, True):
            return "0, all was done"
        if (code, model, swept) == (130, False, False):
            return "130 before a sweep"
        if (code, model) == (130, True):
            return "130 and a model"
    return f"otherwise: at {moment:.2f} s, code {code}, model {model}, swept {swept}, left {sorted(stray)}, {said!r}"


def main() -> None:
    """Kill, interrupt, and print a table of each."""
    kills, interrupts = [int(one) for one in sys.argv[1:3]] + [50, 50][len(sys.argv) - 1 :]
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs do not hear it, nor do theirs
    chance = random.Random(0)
    with TemporaryDirectory() as whole:
        new = folders(Path(whole))
        print(f"{'':28}{'kills':>8}{'half':>10}{'ends':>8}{'same':>8}   stray files")
        for number, work in enumerate(KILLED):
            kill_again_and_again(work, (kills + number) // len(KILLED), new, chance)
        began = time.perf_counter()
        INTERRUPTED.start(next(new)).communicate()
        seconds = time.perf_counter() - began
        for times in (1, 2):
            ended = Counter(
                interrupt(times, next(new), chance.uniform(0.0, seconds / (1 + k % 2)), bool(k % 2), chance)
                for k in range(interrupts)
            )
            print(f"Ctrl-C, {('once', 'twice')[times - 1]} in {seconds:.1f} s:")
            for how, count in sorted(ended.items()):
                print(f"{count:8}  {how}")


if __name__ == "__main__":
    main()
