"""Closed forms for branches: which ones describe a curve within its uncertainty, and models made of them.

May import `judging` and what lies below.
"""

from unbraid.formulas.replace_branches import with_formulas
from unbraid.formulas.result import BranchFormulas, Candidate, Formulas
from unbraid.formulas.search import formulas

__all__ = ["BranchFormulas", "Candidate", "Formulas", "formulas", "with_formulas"]
