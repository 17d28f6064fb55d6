"""Replace the upper layers of a network by a decoupled function: handwritten digits, 64-64-32-10, rank 8.

python examples/network.py [seed]
"""

import sys

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import train_test_split

import unbraid as ub


def trained_network(X: np.ndarray, y: np.ndarray, seed: int) -> torch.nn.Sequential:
    """A small classifier, trained for two seconds."""
    torch.manual_seed(seed)
    network = torch.nn.Sequential(
        torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, 32), torch.nn.Tanh(), torch.nn.Linear(32, 10)
    )
    inputs, labels = torch.tensor(X, dtype=torch.float32), torch.tensor(y)
    optimiser = torch.optim.Adam(network.parameters(), lr=3e-3, weight_decay=1e-4)
    for _ in range(100):
        for batch in torch.randperm(len(inputs)).split(64):
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(network(inputs[batch]), labels[batch]).backward()
            optimiser.step()
    return network


def main(seed: int = 0) -> None:
    """Train, decouple, compare on digits that neither has seen."""
    torch.set_num_threads(1)  # the matrices are small
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X / 16.0, y, test_size=360, random_state=seed, stratify=y)
    network = trained_network(X_train, y_train, seed)

    first, rest = network[:2], network[2:]  # 64 pixels -> 64 activations, and these -> 32 -> 10 logits

    def activations(X: np.ndarray) -> np.ndarray:
        return first(torch.tensor(X, dtype=torch.float32)).detach().numpy()

    samples = np.random.default_rng(0).choice(len(X_train), 360, replace=False)
    problem = ub.Problem.from_function(rest, activations(X_train[samples]))
    method = ub.methods.default(coupling=1.0)  # values weigh more than by default: they decide on the digit
    fit = ub.decouple(problem, rank=8, basis=ub.BSpline(df=5), method=method, starts=2, rng=0)

    truth = rest(torch.tensor(activations(X_test))).detach().numpy()
    linear = LinearRegression().fit(problem.X, problem.F)  # for comparison, of as many numbers as the decoupled model
    print(problem)
    print(fit)
    for name, logits in {
        "network": truth,
        "decoupled": fit.model(activations(X_test)),
        "linear": linear.predict(activations(X_test)),
    }.items():
        right, off = np.mean(logits.argmax(axis=1) == y_test), np.mean(ub.metrics.output_errors(truth, logits))
        print(f"{name:9s}  {100 * right:.1f} % of {len(y_test)} test digits right, logits off by {off:.0f} %")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
