"""The paper's experiments and the comparison of methods: grids of runs, kept on disk as they are done.

May import `plots` and the front door, `decouple`, and what lies below.
"""
