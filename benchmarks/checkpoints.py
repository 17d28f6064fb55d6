"""What checkpoints cost.

    python benchmarks/checkpoints.py

Prints, for a small and a larger fit: seconds without a checkpoint and with one, in turns; milliseconds of one writing
and the size of the file; and seconds of the same call again, when the file holds the finished fit.
"""

import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, ClassVar
from unittest.mock import patch

import unbraid as ub
from unbraid.fitting.checkpoints import checkpoint

CASES: dict[str, tuple[ub.Problem, int, dict[str, Any]]] = {
    "f_trig, S=100, 16 starts": (ub.datasets.trig(100, rng=0)[0], 3, {}),
    "n=m=r=10, S=10⁴, one start, 40 sweeps, 5 steps": (
        ub.datasets.random_system(10, 10, 10, 10_000, "sine", rng=0)[0],
        10,
        {"starts": 1, "method": ub.methods.default(max_steps=5)},
    ),
}
REPEATS = 5


def seconds(problem: ub.Problem, rank: int, settings: dict[str, Any], path: Path | None) -> float:
    """Seconds of one fit, with a checkpoint where there is a path."""
    began = time.perf_counter()
    ub.decouple(problem, rank, rng=0, **settings, checkpoint=path)
    return time.perf_counter() - began


class Timed(checkpoint.Checkpoint):
    """Writes after each sweep."""

    times: ClassVar[list[float]] = []
    sizes: ClassVar[list[int]] = []

    def due(self) -> bool:
        """Whether to write now: always."""
        return True

    def keep(self, loop: object, solver: object) -> None:
        """Write a checkpoint, and note the time and the size."""
        began = time.perf_counter()
        super().keep(loop, solver)
        self.times.append(time.perf_counter() - began)
        self.sizes.append(Path(self.path).stat().st_size)


if __name__ == "__main__":
    for name, case in CASES.items():
        with TemporaryDirectory() as folder:
            without, among, again = [], [], []
            for repeat in range(REPEATS):
                path = Path(folder, f"{repeat}.checkpoint")
                without.append(seconds(*case, None))
                among.append(seconds(*case, path))
                again.append(seconds(*case, path))
            Timed.times.clear()
            Timed.sizes.clear()
            with patch.object(checkpoint, "Checkpoint", Timed):
                seconds(*case, Path(folder, "every.checkpoint"))
            took, size = median(Timed.times), max(Timed.sizes)
        print(f"{name}: {median(without):.2f} s without, {median(among):.2f} s with a checkpoint,")
        print(f"  {1e3 * took:.1f} ms a writing, {size / 1e3:.0f} kB; finished already: {median(again):.3f} s")
