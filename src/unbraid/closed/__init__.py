"""Closed forms for branches: which ones describe a curve within its uncertainty, and models made of them.

May import `judging` and what lies below.
"""

from unbraid.closed.in_place import with_formulas
from unbraid.closed.result import BranchFormulas, Candidate, Formulas
from unbraid.closed.search import formulas

__all__ = ["BranchFormulas", "Candidate", "Formulas", "formulas", "with_formulas"]
