"""
The upper layers of a network, replaced by eight curves
=======================================================

A network 64-64-32-10 with tanh is trained on scikit-learn's handwritten digits.
Everything after its first hidden layer is a function of 64 activations with 10 outputs,
and is replaced by W1 g(W0 x) + bias with eight branches: a layer of eight units that have
each learned an activation function of their own. How much does that cost in accuracy?

``python examples/network.py 1`` takes another seed, of network and split. Other seeds,
and how they compare: :doc:`/network`.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import train_test_split

import unbraid as ub

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.set_num_threads(1)  # the matrices are small
torch.manual_seed(seed)
X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(
    X / 16.0, y, test_size=360, random_state=seed, stratify=y
)

network = torch.nn.Sequential(
    torch.nn.Linear(64, 64),
    torch.nn.Tanh(),
    torch.nn.Linear(64, 32),
    torch.nn.Tanh(),
    torch.nn.Linear(32, 10),
)
inputs, labels = torch.tensor(X_train, dtype=torch.float32), torch.tensor(y_train)
optimiser = torch.optim.Adam(network.parameters(), lr=3e-3, weight_decay=1e-4)
for _ in range(100):
    for batch in torch.randperm(len(inputs)).split(64):
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(network(inputs[batch]), labels[batch]).backward()
        optimiser.step()

# %%
# The samples are the activations of 360 training digits, with the values of the upper
# layers there and their Jacobians, which PyTorch computes.

# 64 pixels -> 64 activations, and these -> 32 -> 10 logits
first, rest = network[:2], network[2:]


def activations(X):
    return first(torch.tensor(X, dtype=torch.float32)).detach().numpy()


samples = np.random.default_rng(0).choice(len(X_train), 360, replace=False)
problem = ub.Problem.from_function(rest, activations(X_train[samples]))
# values weigh more than by default: they decide on the digit
method = ub.methods.default(coupling=1.0)
fit = ub.decouple(problem, rank=8, basis=ub.BSpline(df=5), method=method, starts=2, rng=0)
print(problem)
print(fit)

# %%
# On digits that neither has seen, beside an affine map from activations to logits, which
# has as many numbers (650) as the decoupled model:

truth = rest(torch.tensor(activations(X_test))).detach().numpy()
linear = LinearRegression().fit(problem.X, problem.F)
logits = {
    "network": truth,
    "decoupled": fit.model(activations(X_test)),
    "linear": linear.predict(activations(X_test)),
}
for name, values in logits.items():
    right, off = (
        np.mean(values.argmax(axis=1) == y_test),
        np.mean(ub.metrics.output_errors(truth, values)),
    )
    share = f"{100 * right:.1f} % of {len(y_test)} test digits right"
    print(f"{name:9s}  {share}, logits off by {off:.0f} %")

# %%
# The layers that were replaced have 2410 numbers, the decoupled function 650. The digits
# are easy enough that an affine map does nearly as well; what it cannot follow are the
# logits themselves.
#
# The learned activation functions:

ub.plots.branches(fit)
plt.show()

# %%
# Do not read much into them. Thirty-two tanh units do not have rank 8, so the fit is an
# approximation, Error(J) stays at 0.2, and another start finds other directions, as the
# notes say. What can be relied on is what was measured on test digits.
