"""One step of each algorithm, and the one loop that drives them; the way between the user's units and theirs.

A solver is a pure `step` and a `measure` over a batch of starts. May import `results` and what lies below.
"""
