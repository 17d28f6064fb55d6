"""CPU seconds of `import unbraid` beyond `import numpy, scipy`.

    python benchmarks/import_time.py

Prints the median of nine differences, each import in fresh processes, in turns.
"""

import statistics
import subprocess
import sys

CODE = "import time; import {}; print(time.process_time())"


def cpu_seconds(modules: str) -> float:
    """CPU seconds of a process that imports those modules and stops."""
    done = subprocess.run([sys.executable, "-c", CODE.format(modules)], capture_output=True, text=True, check=True)
    return float(done.stdout)


def main() -> None:
    """Print the median of the differences."""
    extra = [cpu_seconds("numpy, scipy, unbraid") - cpu_seconds("numpy, scipy") for _ in range(9)]
    print(f"import unbraid: {statistics.median(extra):.3f} s of CPU beyond numpy and scipy")


if __name__ == "__main__":
    main()
