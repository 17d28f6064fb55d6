"""Pictures of branches that carry nothing: no curve, and no direction."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("matplotlib")
import unbraid as ub
from idle_branches import IDLE, five_branches


def test_a_branch_that_carries_nothing_has_no_curve() -> None:
    panels = ub.plots.branches(five_branches())
    assert [len(panel.lines) == 0 for panel in panels] == [j in IDLE for j in range(5)]
    assert [one.get_text() for one in panels[1].texts] == ["carries nothing"]
    assert panels[3].get_title(loc="left") == "branch 4"
    [legend] = panels[0].figure.legends
    assert "found" in [one.get_text() for one in legend.get_texts()]


def test_a_truth_of_fewer_branches_has_as_many_panels() -> None:
    _, truth = ub.datasets.trig(S=100, rng=1)
    panels = ub.plots.branches(five_branches(), truth)
    assert len(panels) == 3
    assert all("true" in panel.get_legend_handles_labels()[1] for panel in panels)


def test_a_direction_that_means_nothing_is_not_drawn() -> None:
    panel = ub.plots.weights(five_branches())
    into = np.array(panel.images[0].get_array(), dtype=float)
    np.testing.assert_array_equal(np.isnan(into).all(axis=1), [j in IDLE for j in range(5)])
    assert [one.get_text() for one in panel.texts].count("carries nothing") == 2


def test_starts_are_titled_by_what_they_were_compared_in() -> None:
    assert ub.plots.starts(five_branches()).get_title() == "3 starts finished, 1 agrees on all 5 branches"
