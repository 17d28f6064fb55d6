"""The paper's two experiments, run again.

`readings` says how unclear points of the paper are read, `cells` runs the grids, `claims` judges every claim on their
numbers, `figures` and `output` show what came out.
"""
