"""How fast a table of 10⁶ × 10 numbers is read.

    python benchmarks/reading.py

Prints, for a .csv and a Parquet file, the size, the seconds, and whether the numbers are the same.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet

from unbraid.reading import read_problem

S, COLUMNS = 10**6, 10


def main() -> None:
    """Write the table as .csv and as Parquet, and read both."""
    names = [f"x{k}" for k in range(COLUMNS)]
    numbers = np.random.default_rng(0).standard_normal((S, COLUMNS))
    with tempfile.TemporaryDirectory() as folder:
        plain, columnar = Path(folder) / "table.csv", Path(folder) / "table.parquet"
        with plain.open("w", encoding="ascii") as file:
            file.write(",".join(names) + "\n")
            file.writelines(",".join(map(repr, row)) + "\n" for row in numbers.tolist())
        pyarrow.parquet.write_table(pyarrow.table(dict(zip(names, numbers.T, strict=True))), columnar)
        for path in (plain, columnar):
            start = time.perf_counter()
            problem = read_problem(path, inputs="x0:x8", outputs="x9").problem
            seconds = time.perf_counter() - start
            assert problem.F is not None
            same = np.array_equal(problem.X, numbers[:, :9]) and np.array_equal(problem.F, numbers[:, 9:])
            print(f"{path.name}: {path.stat().st_size / 1e6:.0f} MB in {seconds:.1f} s, the same numbers: {same}")


if __name__ == "__main__":
    main()
