"""Which rank, df, degree and λ to use: candidates are compared by how well they predict samples that were held out."""

from unbraid.selection.select import Selection, select
from unbraid.selection.validation import Row, Settings

__all__ = ["Row", "Selection", "Settings", "select"]
