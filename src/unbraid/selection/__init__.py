"""Which rank and settings to use: candidates compared on held-out samples, or by what the data support.

May import `fitting` and what lies below.
"""
