"""The stages of one fit: what was asked, how it is run, and search, polish, levels and smoothing in their order.

`fit_rank` is the walk through the stages. May import `methods` and what lies below.
"""
