"""Models as JSON texts that `DecoupledModel.load` reads back, to the last bit (`results.files.json_text`)."""

from __future__ import annotations

from collections.abc import Mapping

from unbraid.export.files import Options
from unbraid.results.files.json_text import ENDING, json_bytes
from unbraid.results.model import DecoupledModel


def write(model: DecoupledModel, options: Options) -> Mapping[str, bytes]:
    """The text of a model; its numbers are float64 always."""
    return {ENDING: json_bytes(model)}
