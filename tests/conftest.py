"""Settings of the whole suite: one hypothesis profile, and the modules that tests share."""

import importlib
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is imported: a core is all that a test has
os.environ["MPLBACKEND"] = "agg"  # no picture looks for a display
os.environ.setdefault("SCIPY_ARRAY_API", "1")  # before SciPy is imported: scikit-learn skips one of its checks without
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # hundreds of processes are started: with compiled modules each
sys.dont_write_bytecode = False  # is there in half of the time
TESTS = Path(__file__).parent
for shared in (TESTS, TESTS.parent / "benchmarks"):  # registry.py and its like, and the plain twin of a sweep
    sys.path.insert(0, str(shared))

LONG = ("docs/test_site.py", "docs/test_command_line.py", "docs/test_pages.py", "studies/test_reproduction.py")
"""Files with tests of many seconds. They come first: one of them begun last would be waited for by all."""

settings.register_profile("unbraid", deadline=None, max_examples=7, derandomize=True)  # the same ones everywhere
settings.register_profile("thorough", deadline=None, max_examples=300, print_blob=True)
settings.load_profile("unbraid")


def pytest_configure(config: pytest.Config) -> None:
    """Fonts are listed anew, once for all processes: a list that another environment has left may miss some."""
    if not hasattr(config, "workerinput"):
        folder = tempfile.mkdtemp(prefix="unbraid-fonts-")
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
        os.environ["MPLCONFIGDIR"] = folder
        importlib.import_module("matplotlib.font_manager")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long tests first, the others in the order they have."""
    items.sort(key=lambda item: not item.path.as_posix().endswith(LONG))


@pytest.fixture(autouse=True, scope="session")
def ctrl_c_is_heard() -> None:
    """Ctrl-C raises KeyboardInterrupt, also where the suite runs in the background of a shell, which ignores it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def nothing_was_asked_for_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a fit has helpers hangs on what its process was asked for so far: for each test it is a new one."""
    from unbraid.runtime import helpers

    monkeypatch.setattr(helpers, "DEMAND", helpers.Demand())


@pytest.fixture(autouse=True)
def no_picture_left_open() -> Iterator[None]:
    """Figures that a test made go with it."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture
def no_formulas(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages without formulas, whose search takes most of a page's time; tests/report/test_formulas.py has them."""
    monkeypatch.setattr("unbraid.report.write.in_formulas", lambda _: None)


@pytest.fixture
def no_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures whose parts make no room for each other, which takes half of a figure's time: nobody looks at them."""
    for drawing in ("unbraid.report.svg", "unbraid.studies.tables", "unbraid.cli.demo"):
        monkeypatch.setattr(f"{drawing}.settle_layout", lambda figure: figure.set_layout_engine("none"))
