"""Processes, disk, clusters, progress and journals: how work is run, without any mathematics.

May import `kernels` (for the array types) and `errors`.
"""
