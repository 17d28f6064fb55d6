"""The page about the fit of a dynamic model."""

from unbraid.report.dynamic.write import write_report

__all__ = ["write_report"]
