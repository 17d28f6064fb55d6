"""What a fit is worth: held-out errors, uncertainty, importance, and which part of it is really known.

All of it comes from the model to first order in its unknowns (`tangent`), and from how well the data determine these
(`neighbourhood`). May import solvers and what lies below them.
"""
