"""What a fit is worth, asked for: diagnostics, uniqueness, importance, and uncertainty, for which it may fit again.

The numbers come from `inference`, and what a user holds in the end is in `results.worth`. May import `fitting` and what
lies below.
"""
