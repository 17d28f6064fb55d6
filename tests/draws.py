"""Claims about draws: a few draws of them in `make test`, many in `make verify`; and what holds for any refusal."""

import pytest


def few_or_many(few: int, many: int) -> pytest.MarkDecorator:
    """Give a test `draws`: `few` each time, `many` where claims are verified."""
    return pytest.mark.parametrize(
        "draws", [pytest.param(few, id="few draws"), pytest.param(many, id="many draws", marks=pytest.mark.verify)]
    )


def check_sentence(said: str) -> None:
    """A sentence that a terminal shows as it is."""
    assert said.endswith((".", "?")), said
    assert said.isprintable(), said
    assert len(said) < 600, said
