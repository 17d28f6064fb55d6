"""Arrays in, arrays out, no checks: the inner loops of everything above.

Every kernel takes leading axes (starts, branches) and treats each entry of them exactly as if it
stood alone, down to the last bit: sums run along the sample axis only, by BLAS or by `bincount`.
"""
