"""Closed forms for branches: which ones describe a curve within its uncertainty, and models made of them.

May import `judging` and what lies below.
"""
