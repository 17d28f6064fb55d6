"""Which inputs and which branches matter: shares of each output's variance, their intervals, and whether one is needed.

Points at which inputs are independent come from `marginals`; `sobol` and `shares` have the shares, `intervals` how far
they are known, `needs` and `without` whether a model without a branch or an input would do. `result` is for the user.
"""
