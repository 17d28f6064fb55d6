"""How many CPU seconds reports take and how large they are, for small and large models.

    python benchmarks/report.py

Fits are short on purpose: a report takes the same time whether its model is good or not.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import unbraid as ub

SIZES = ((2, 2, 3, 100), (5, 5, 6, 1000), (10, 10, 10, 1000), (30, 30, 20, 10_000))
"""n, m, r and S."""


def main() -> None:
    """Print a table."""
    quick = ub.methods.default(max_sweeps=5, max_steps=2)
    print("| n | m | r | S | CPU seconds | of them `diagnose` | kB |\n|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for row, (n, m, r, S) in enumerate([SIZES[0], *SIZES]):
            problem, _ = ub.datasets.random_system(n=n, m=m, r=r, S=S, kind="sine", rng=0)
            fit = ub.decouple(problem, r, method=quick, starts=1, rng=0)
            path = Path(folder) / "report.html"
            began = time.process_time()
            fit.report(path)
            whole = time.process_time() - began
            began = time.process_time()
            ub.diagnose(fit)
            part = time.process_time() - began
            if row:  # the first report also imports matplotlib
                print(f"| {n} | {m} | {r} | {S} | {whole:.2f} | {part:.2f} | {path.stat().st_size / 1000:.0f} |")


if __name__ == "__main__":
    main()
