"""Decoupled models as layers of neural networks, with PyTorch, which the extra `torch` brings.

May import `decouple` and what lies below.
"""
