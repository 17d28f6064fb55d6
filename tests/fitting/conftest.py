"""Fixtures of the tests of fits."""

from __future__ import annotations

import pytest

from unbraid.fitting.checkpoints import checkpoint


@pytest.fixture
def written_after_each_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checkpoints are written whenever they could be."""
    monkeypatch.setattr(checkpoint, "EVERY", 0.0)
    monkeypatch.setattr(checkpoint, "SHARE", float("inf"))
