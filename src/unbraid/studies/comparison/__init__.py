"""Methods side by side on systems with a known answer.

A system or a method joins by a small file of its own in `systems` or `contenders`. `entries` finds them, `cells` runs
them, `figures` and `output` show what came out.
"""
