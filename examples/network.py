"""
A network, replaced by six curves
=================================

A network 7-64-64-1 learns how long a piston takes for a cycle, from 5,000 noisy
simulations. `ub.networks.compress` replaces it by W1 g(W0 x) + bias with six branches:
a layer of six units, each with an activation function of its own. That is 91 numbers
instead of 4,737. Is it worth it? Beside it stand an affine map, and a network of one hidden
layer with as many numbers that was distilled from the large one.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch

import unbraid as ub

torch.set_num_threads(1)  # the matrices are small
torch.manual_seed(0)
rng = np.random.default_rng(0)


def cycle_time(u):
    """Of a piston, for inputs between 0 and 1: a common test of surrogates."""
    low = np.array([30.0, 0.005, 0.002, 1000.0, 90000.0, 290.0, 340.0])
    high = np.array([60.0, 0.020, 0.010, 5000.0, 110000.0, 296.0, 360.0])
    M, S, V0, k, P0, Ta, T0 = (low + (high - low) * u).T
    A = P0 * S + 19.62 * M - k * V0 / S
    V = S / (2 * k) * (np.sqrt(A**2 + 4 * k * P0 * V0 * Ta / T0) - A)
    return 2 * np.pi * np.sqrt(M / (k + S**2 * P0 * V0 * Ta / (T0 * V**2)))


u = rng.uniform(size=(6000, 7))
y = cycle_time(u)
y = (y - y.mean()) / y.std() + 0.02 * rng.standard_normal(len(y))
inputs = torch.tensor(2 * u - 1, dtype=torch.float32)
outputs = torch.tensor(y[:, None], dtype=torch.float32)
X, Y, X_test, Y_test = inputs[:5000], outputs[:5000], inputs[5000:], outputs[5000:]


def trained(network, targets, rate=3e-3, epochs=40):
    optimiser = torch.optim.Adam(network.parameters(), lr=rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, epochs)
    for _ in range(epochs):
        for batch in torch.randperm(len(X)).split(64):
            optimiser.zero_grad()
            torch.nn.functional.mse_loss(network(X[batch]), targets[batch]).backward()
            optimiser.step()
        schedule.step()
    return network


network = trained(
    torch.nn.Sequential(
        torch.nn.Linear(7, 64),
        torch.nn.SiLU(),
        torch.nn.Linear(64, 64),
        torch.nn.SiLU(),
        torch.nn.Linear(64, 1),
    ),
    Y,
)

# %%
# The part to be replaced is the whole network here; it could be the modules ``"2:"``, or
# one with a name. Samples are drawn from the given inputs, Jacobians come from PyTorch.

result = ub.networks.compress(network, ":", X, rank=6)
print(result)
print(result.fit)

# %%
# Trained on for some epochs, to agree with the network on all inputs:

before = result.network(X_test)
result.finetune(X, epochs=20)
print(result.table())

# %%
# What that is worth, on simulations that nobody has seen (noise is 2 %):

with torch.no_grad():
    told = network(X)
layers = torch.nn.Linear(7, 10), torch.nn.SiLU(), torch.nn.Linear(10, 1)
small = trained(torch.nn.Sequential(*layers), told, 1e-2)


def with_ones(x):
    return torch.cat([x, torch.ones(len(x), 1)], 1)


affine = with_ones(X_test) @ torch.linalg.lstsq(with_ones(X), Y).solution
found = {
    "network, 4737 numbers": network(X_test),
    "six curves, 91 numbers": before,
    "six curves, trained on": result.network(X_test),
    "distilled MLP, 91 numbers": small(X_test),
    "affine map, 8 numbers": affine,
}
for name, values in found.items():
    off = 100 * (values - Y_test).square().mean().sqrt() / Y_test.std()
    print(f"{name:26s} off by {off.item():4.1f} %")

# %%
# The six activation functions, over what each of them sees:

ub.plots.branches(result.fit)
plt.show()

# %%
# `result.network` is a module like any other. ``result.export("piston.onnx")`` writes it
# for onnxruntime, ``result.model.export("piston.c")`` the curves as a function in C.
