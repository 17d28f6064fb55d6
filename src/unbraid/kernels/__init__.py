"""Numerical kernels: arrays in, arrays out, no checks.

The bottom of the library: may import nothing else of it. Every kernel takes leading axes (starts, branches) and
treats each entry of them exactly as if it stood alone, down to the last bit: sums run along the sample axis only, by
BLAS or by `bincount`.
"""
