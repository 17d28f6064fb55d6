"""The documentation site: it builds without a warning, its examples run, and it needs no network."""

from __future__ import annotations

import importlib
import inspect
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import unbraid

ROOT = Path(__file__).parents[2]
API = "\n".join(path.read_text(encoding="utf-8") for path in sorted(ROOT.glob("docs/api/*.rst")))
EXAMPLES = sorted(path.stem for path in ROOT.glob("examples/*.py"))


def copied(place: Path) -> Path:
    """What the site is made of, so that nothing is written beside the sources, and nothing old is in the way."""
    for folder in ("docs", "examples", "benchmarks"):
        shutil.copytree(ROOT / folder, place / folder, ignore=shutil.ignore_patterns("gallery", "__pycache__"))
    for page in ROOT.glob("*.md"):
        shutil.copy(page, place)
    return place


def built(folder: Path, *options: str) -> tuple[Path, Path]:
    """The site and what it was made of, once it has been built without a warning, and asks nothing of the network."""
    site, source = folder / "site", copied(folder / "source")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-d", str(folder / "doctrees"), *options]
    done = subprocess.run([*command, str(source / "docs"), str(site)], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.returncode == 0
    for path in site.rglob("*.html"):
        assert remote(path.read_text(encoding="utf-8")) == [], f"{path.name} asks the network"
    return site, source


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    """Its examples are shown and not run, which takes a minute."""
    site, _ = built(tmp_path, "-D", "plot_gallery=0")
    assert all((site / "gallery" / f"{example}.html").exists() for example in EXAMPLES)
    for page in site.glob("api/*.html"):
        described = re.sub(r"<pre>.*?</pre>", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        text = re.sub(r"<[^>]+>", "", described)
        assert not re.search(r"\bnpt\.|\bnp\.(?!load)", text), f"{page.name} names types as the source does"


@pytest.mark.verify
def test_the_examples_run_and_keep_their_word(tmp_path: Path) -> None:
    """One test, because building takes a minute and tests are spread over processes."""
    site, source = built(tmp_path)
    for example in EXAMPLES:
        page = (site / "gallery" / f"{example}.html").read_text(encoding="utf-8")
        assert "sphx-glr-script-out" in page, f"{example} printed nothing"
        assert "sphx-glr-single-img" in page, f"{example} drew nothing"
    network_keeps_its_accuracy((source / "docs" / "gallery" / "network.rst").read_text(encoding="utf-8"))


def remote(page: str) -> list[str]:
    """Scripts, styles and pictures that come from elsewhere."""
    return re.findall(r"<(?:script|link|img)\b[^>]*(?:src|href)=\"(?:https?:)?//[^>]*>", page)


def network_keeps_its_accuracy(page: str) -> None:
    """Curves are nearly as good as the network, and better than as many numbers; docs/network.md shows what is printed.

    But for digits.
    """
    printed = [line.strip() for line in page.splitlines() if " off by " in line and "{" not in line]
    off = {line.split(",")[0]: float(line.split()[-2]) for line in reversed(printed)}
    assert off["six curves"] <= off["network"] + 2.0
    assert off["six curves"] < off["distilled MLP"]
    assert off["six curves"] < off["affine map"]
    (shown,) = re.findall(
        r"^```text\n(.*?)^```", (ROOT / "docs/network.md").read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    spelled = [re.sub(r" *[\d.]+ %", " # %", line) for line in printed]
    assert [re.sub(r" *[\d.]+ %", " # %", line) for line in shown.splitlines()] == spelled


def described() -> set[str]:
    """The names that the API reference has entries for, with their modules."""
    names, module, directive = set(), "unbraid", ""
    for line in API.splitlines():
        if match := re.match(r"\.\. (\w+):: ([\w.]+)", line):
            directive, name = match[1], match[2]
            if directive in ("currentmodule", "automodule"):
                module = name
            elif directive.startswith("auto"):
                names.add(name if name.startswith("unbraid.") else f"{module}.{name}")
        elif directive == "automodule" and (match := re.match(r"   :members: (.+)", line)):
            names |= {f"{module}.{name}" for name in match[1].split(", ")}
    return names


MODULES = ("datasets", "dynamics", "methods", "metrics", "networks", "plots")
"""Public names that are modules."""


def test_the_reference_has_every_public_name() -> None:
    assert {f"unbraid.{name}" for name in unbraid.__all__ if name not in MODULES} - described() == set()


@pytest.mark.parametrize("module", ["bases", "dynamics", "methods", "plots", "reading"])
def test_the_reference_has_every_name_of(module: str) -> None:
    whole = importlib.import_module(f"unbraid.{module}")
    public = {name for name in whole.__all__ if not name.isupper() and not inspect.ismodule(getattr(whole, name))}
    assert public - {name.rpartition(".")[2] for name in described()} == set()


@pytest.mark.parametrize("module", MODULES)
def test_a_public_module_lists_what_the_reference_describes_and_nothing_else(module: str) -> None:
    own = getattr(unbraid, module)
    listed = [name for name in dir(own) if not inspect.ismodule(getattr(own, name))]
    assert {f"unbraid.{module}.{name}" for name in listed} == {
        name for name in described() if name.rpartition(".")[0] == f"unbraid.{module}"
    }
