"""Which rank and settings to use, and what a fit is worth: held-out errors, diagnostics, uniqueness.

May import `fitting` and what lies below.
"""

from unbraid.selection.answer import Selection
from unbraid.selection.select import select
from unbraid.selection.validation import Row, Settings

__all__ = ["Row", "Selection", "Settings", "select"]
