"""Networks with parts replaced by a few curves: accuracy against numbers, beside other ways to have as few.

    python benchmarks/networks.py [seeds] [fashion] [conv] [--data=FOLDER]
    python benchmarks/networks.py [seeds] mnist WEIGHTS FOLDER

`fashion`: a network 784-256-128-64-10 is trained on Fashion-MNIST (Debian's `dataset-fashion-mnist`, or the folder of
its four files), and all after its first hidden layer is replaced, r = 4, 8, 16, 32. At r = 8 and 16, with as many
numbers: an affine map; every layer a product of two by truncated SVD; the weights of largest magnitude; a small network
of one hidden layer distilled from values, and one from values and Jacobians. All see the same samples before, and the
same fine-tuning (three epochs of `finetune`'s distillation) after. `conv`: the head of a small convolutional network on
the same data. `mnist`: a network 784-80-60-40-10 whose weights W1, b1, … are in an .npz file, with f(z) = z above and
0.2 (exp z - 1) below zero, from 360 samples.

Accuracies are in % of the 10,000 test images, means over seeds (medians for `mnist`). Nothing is chosen by them.
"""

from __future__ import annotations

import copy
import gzip
import itertools
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

import unbraid as ub
from unbraid.networks.compressing.finetuning import Loss, Objective, prepare, train
from unbraid.networks.compressing.measures import latency
from unbraid.networks.compressing.parts import count_numbers, find_part
from unbraid.networks.compressing.samples import Examples

FASHION = Path("/usr/share/datasets/fashion-mnist")
RANKS, COMPARED, EPOCHS = (4, 8, 16, 32), (8, 16), 3
LOSSES: tuple[Loss, ...] = ("distil", "task")


def read_idx(folder: Path, name: str) -> Any:
    """The bytes of a file in the format of MNIST, with or without gzip."""
    for path in (folder / name, folder / f"{name}.gz"):
        if path.exists():
            data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
            shape = [int.from_bytes(data[4 + 4 * k : 8 + 4 * k], "big") for k in range(data[3])]
            return np.frombuffer(data, np.uint8, offset=4 + 4 * len(shape)).reshape(shape)
    raise SystemExit(f"{folder} has no {name}: install Debian's dataset-fashion-mnist, or give the folder.")


def images(folder: Path, which: str) -> tuple[Any, Any]:
    """Images (N, 784) between 0 and 1, and their labels."""
    X = read_idx(folder, f"{which}-images-idx3-ubyte").reshape(-1, 784).astype(np.float32) / 255.0
    return torch.tensor(X), torch.tensor(read_idx(folder, f"{which}-labels-idx1-ubyte").astype(np.int64))


def accuracy(network: nn.Module, X: Any, y: Any) -> float:
    """In %."""
    network.eval()
    with torch.no_grad():
        return 100.0 * float((torch.cat([network(some) for some in X.split(1000)]).argmax(1) == y).double().mean())


def trained(network: nn.Module, X: Any, y: Any, epochs: int, seed: int) -> nn.Module:
    """A network trained on a task by Adam."""
    generator = torch.Generator().manual_seed(seed)
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, epochs)
    for _ in range(epochs):
        network.train()
        for some in torch.randperm(len(X), generator=generator).split(128):
            optimiser.zero_grad()
            nn.functional.cross_entropy(network(X[some]), y[some]).backward()
            optimiser.step()
        schedule.step()
    return network.eval()


def finetuned(network: nn.Module, original: nn.Module, X: Any, y: Any, without: Any) -> Any:
    """A copy, trained on as `finetune` does, without the same inputs; pruned weights stay zero."""
    network = copy.deepcopy(network)
    masks = [one for one in network.modules() if hasattr(one, "mask")]

    class Masks:
        """What keeps pruned weights at zero."""

        def keep(self) -> None:
            """Set them to zero."""
            for one in masks:
                one.weight.data *= one.mask

    data = prepare((X, y), None, np.random.default_rng(0), Examples(X[:1], y[:1]))
    objective = Objective(original, "distil", True, 1.0)
    every: Any = [Masks()]
    settings: Any = {"epochs": EPOCHS, "what": "all", "rate": 1e-3, "patience": 2, "callback": None}
    train(network, objective, data, every, **settings, without=without)
    return network


def affine(part: nn.Module, X: Any, numbers: int) -> nn.Module:
    """The affine map nearest to a part at samples, whatever numbers it has."""
    F = part(X).detach()
    ones = torch.cat([X, torch.ones(len(X), 1)], 1).double()
    ridge = 1e-3 * len(X) * torch.eye(ones.shape[1], dtype=torch.float64)
    W = torch.linalg.solve(ones.T @ ones + ridge, ones.T @ F.double())
    layer = nn.Linear(X.shape[1], F.shape[1])
    layer.weight.data, layer.bias.data = W[:-1].T.float().contiguous(), W[-1].float()
    return layer


def truncated(part: nn.Module, X: Any, numbers: int) -> nn.Module:
    """Every linear layer of a part as a product of two, by its leading singular vectors."""
    layers = [one for one in part if isinstance(one, nn.Linear)]
    share = (numbers - sum(one.out_features for one in layers)) / sum(one.weight.numel() for one in layers)
    result: list[nn.Module] = []
    for one in part:
        if not isinstance(one, nn.Linear):
            result.append(copy.deepcopy(one))
            continue
        m, n = one.in_features, one.out_features
        k = max(1, min(n, int(share * m * n / (m + n))))
        U, s, V = torch.linalg.svd(one.weight.detach(), full_matrices=False)
        first, second = nn.Linear(m, k, bias=False), nn.Linear(k, n)
        first.weight.data, second.weight.data = s[:k, None].sqrt() * V[:k], U[:, :k] * s[:k].sqrt()
        second.bias.data = one.bias.detach().clone()
        result += [first, second]
    return nn.Sequential(*result)


def pruned(part: nn.Module, X: Any, numbers: int) -> nn.Module:
    """A part with its largest weights alone."""
    part = copy.deepcopy(part)
    layers = [one for one in part if isinstance(one, nn.Linear)]
    left = numbers - sum(one.out_features for one in layers)
    sizes = torch.cat([one.weight.detach().abs().flatten() for one in layers])
    least = sizes.topk(left).values[-1]
    for one in layers:
        one.mask = (one.weight.detach().abs() >= least).float()
        one.weight.data *= one.mask
    return part


def distilled(part: nn.Module, X: Any, numbers: int, slopes: bool, seed: int = 0) -> nn.Module:
    """A network of one hidden layer with so many numbers, fitted to a part at samples, by its values or slopes too."""
    torch.manual_seed(seed)
    F = part(X).detach()
    m, n = X.shape[1], F.shape[1]
    small = nn.Sequential(nn.Linear(m, max(1, (numbers - n) // (m + n + 1))), nn.Tanh(), nn.Linear(1, 1))
    small[2] = nn.Linear(small[0].out_features, n)
    J = torch.func.vmap(torch.func.jacrev(lambda x: part(x[None])[0]))(X).detach()
    spread, weight = X.std(0), (F - F.mean(0)).square().mean()
    size = (J * spread).square().mean()
    optimiser = torch.optim.Adam(small.parameters(), lr=5e-3)
    steps = 1500
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    for _ in range(steps):
        optimiser.zero_grad()
        loss = (small(X) - F).square().mean() / weight
        if slopes:
            hidden = small[1](small[0](X))
            own = torch.einsum("nh,sh,hm->snm", small[2].weight, 1.0 - hidden**2, small[0].weight)
            loss = loss + 0.3 * ((own - J) * spread).square().mean() / size
        loss.backward()
        optimiser.step()
        schedule.step()
    return small


BASELINES: dict[str, Callable[..., nn.Module]] = {
    "affine map": affine,
    "truncated SVD": truncated,
    "magnitude pruning": pruned,
    "MLP, values": lambda part, X, numbers: distilled(part, X, numbers, False),
    "MLP, values and Jacobians": lambda part, X, numbers: distilled(part, X, numbers, True),
}


def fashion(seeds: range, folder: Path) -> None:
    """The table of accuracy against numbers."""
    (X, y), (X_test, y_test) = images(folder, "train"), images(folder, "t10k")
    rows: dict[tuple[str, int], list[tuple[float, float, float]]] = {}
    whole = []
    for seed in seeds:
        torch.manual_seed(seed)
        sizes = (784, 256, 128, 64, 10)
        layers = [one for m, n in itertools.pairwise(sizes) for one in (nn.Linear(m, n), nn.ReLU())][:-1]
        network = trained(nn.Sequential(*layers), X, y, 10, seed)
        whole.append(accuracy(network, X_test, y_test))
        print(f"seed {seed}: network {whole[-1]:.2f}", flush=True)
        part = network[2:]
        for rank in RANKS:
            result = ub.networks.compress(network, "2:", (X, y), rank=rank, rng=seed)
            numbers = count_numbers(result.modules[0])
            samples = torch.tensor(result.replacements[0].X, dtype=torch.float32)
            before = accuracy(result.network, X_test, y_test)
            result.finetune((X, y), epochs=EPOCHS)
            after = accuracy(result.network, X_test, y_test)
            rows.setdefault(("decoupled", rank), []).append((numbers, before, after))
            print(f"  r = {rank}, {len(samples)} samples: {before:.2f}, {after:.2f}", flush=True)
            for name, make in BASELINES.items() if rank in COMPARED else ():
                replaced = nn.Sequential(*network[:2], make(part, samples, numbers))
                kept = count_numbers(replaced[2]) if name != "magnitude pruning" else numbers
                one = (kept, accuracy(replaced, X_test, y_test))
                later = accuracy(finetuned(replaced, network, X, y, result.comparison.inputs), X_test, y_test)
                rows.setdefault((name, rank), []).append((*one, later))
                print(f"  {name}, {kept} numbers: {one[1]:.2f}, {later:.2f}", flush=True)
    print(f"\nnetwork {np.mean(whole):.2f}, its part {count_numbers(part)} numbers")
    print(f"{'':28}{'as r':>6}{'numbers':>9}{'before':>9}{'after':>9}{'worst':>9}")
    for (name, rank), found in rows.items():
        numbers, before, after = np.mean(found, axis=0)
        print(f"{name:28}{rank:6}{numbers:9.0f}{before:9.2f}{after:9.2f}{min(one[2] for one in found):9.2f}")


def conv(seeds: range, folder: Path) -> None:
    """The head of a convolutional network."""
    (X, y), (X_test, y_test) = images(folder, "train"), images(folder, "t10k")
    X, X_test = X.unflatten(1, (1, 28, 28)), X_test.unflatten(1, (1, 28, 28))
    for seed in seeds:
        torch.manual_seed(seed)
        features = [nn.Conv2d(1, 12, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(12, 24, 3), nn.ReLU(), nn.MaxPool2d(2)]
        head = nn.Sequential(nn.Flatten(), nn.Linear(600, 128), nn.ReLU(), nn.Linear(128, 10))
        network = trained(nn.Sequential(*features, head), X, y, 5, seed)
        before = count_numbers(network[6])
        result = ub.networks.compress(network, "6", (X, y), budget=0.1, rng=seed)
        rough = accuracy(result.network, X_test, y_test)
        result.finetune((X, y), epochs=EPOCHS)
        numbers, after = count_numbers(result.modules[0]), accuracy(result.network, X_test, y_test)
        print(
            f"conv, seed {seed}: network {accuracy(network, X_test, y_test):.2f}; head {before} to {numbers} numbers "
            f"({before / numbers:.1f} times fewer), {rough:.2f}, fine-tuned {after:.2f}",
            flush=True,
        )
    exported(result, network, X_test)


def exported(result: Any, network: nn.Module, X: Any) -> None:
    """What onnxruntime makes of a compressed network."""
    import tempfile

    import onnxruntime

    with tempfile.TemporaryDirectory() as folder:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        path = result.export(Path(folder) / "small.onnx")
        before = Path(folder) / "before.onnx"
        torch.onnx.export(network, (X[:2],), str(before), input_names=["x"], dynamo=True, verbose=False,
                          dynamic_shapes=({0: torch.export.Dim("batch", min=1)},))  # fmt: skip
        small, large = (onnxruntime.InferenceSession(str(one), options) for one in (path, before))
        ours = small.run(None, {"x": X.numpy()})[0].argmax(1)
        with torch.no_grad():
            theirs = torch.cat([result.network(some) for some in X.split(1000)]).argmax(1).numpy()
        print(f"onnxruntime: the same class as torch for {np.sum(ours == theirs)} of {len(X)} test images")

        for batch in (1, 256):
            some = X[:batch]
            values = {"x": some.numpy()}
            ms = [1e3 * latency(one, X, batch) for one in (network, result.network)]
            for session in (large, small):
                best = np.inf
                for _ in range(200 if batch == 1 else 30):
                    began = time.perf_counter()
                    session.run(None, values)
                    best = min(best, time.perf_counter() - began)
                ms.append(1e3 * best)
            print("batch {:4}: torch {:.3f} ms to {:.3f}, onnxruntime {:.3f} ms to {:.3f}".format(batch, *ms))


class Elu(nn.Module):  # type: ignore[misc]
    """f(z) = z above zero, 0.2 (exp z - 1) below."""

    def forward(self, z: Any) -> Any:
        """The values."""
        return nn.functional.elu(z, 0.2)


def mnist(seeds: range, weights: str, folder: Path) -> None:
    """The network of the published experiments."""
    (X, y), (X_test, y_test) = images(folder, "train"), images(folder, "t10k")
    arrays, layers = np.load(weights), []
    for k in range(1, 5):
        W, b = (torch.tensor(arrays[f"{name}{k}"], dtype=torch.float32) for name in ("W", "b"))
        layer = nn.Linear(*W.shape[::-1])
        layer.weight.data, layer.bias.data = W, b.flatten()
        layers += [layer, Elu()]
    network = nn.Sequential(*layers[:-1])
    print(f"network {accuracy(network, X_test, y_test):.2f}")
    for rank in (10, 20):
        rows = []
        for seed in seeds:
            began = time.perf_counter()
            result = ub.networks.compress(network, "2:", (X, y), rank=rank, samples=360, rng=seed)
            seconds = time.perf_counter() - began
            before = accuracy(result.network, X_test, y_test)
            after = [
                accuracy(copy.deepcopy(result).finetune((X, y), loss=loss).network, X_test, y_test) for loss in LOSSES
            ]
            rows.append((before, seconds, *after))
            trained_on = ", ".join(f"{loss} {one:.2f}" for loss, one in zip(LOSSES, after, strict=True))
            print(f"  r = {rank}, draw {seed}: {before:.2f} in {seconds:.0f} s; fine-tuned: {trained_on}", flush=True)
        found, seconds, *tuned = np.array(rows).T
        print(
            f"r = {rank}, {count_numbers(result.modules[0])} of {count_numbers(find_part(network, '2:').of(network))} "
            f"numbers: median {np.median(found):.2f}, worst {found.min():.2f}, at most {seconds.max():.0f} s; "
            "fine-tuned: "
            + ", ".join(
                f"{loss} {np.median(one):.2f}, worst {one.min():.2f}" for loss, one in zip(LOSSES, tuned, strict=True)
            )
        )


def main() -> None:
    """What was asked for."""
    torch.set_num_threads(1)
    words = [word for word in sys.argv[1:] if not word.startswith("--data=")]
    data = next((word.removeprefix("--data=") for word in sys.argv if word.startswith("--data=")), FASHION)
    first, _, last = words.pop(0).rpartition("-") if words and words[0][0].isdigit() else ("0", "", "5")
    seeds = range(int(first or 0), int(last))
    if words[:1] == ["mnist"]:
        mnist(seeds, words[1], Path(words[2]))
        return
    if not words or "fashion" in words:
        fashion(seeds, Path(data))
    if not words or "conv" in words:
        conv(seeds, Path(data))


if __name__ == "__main__":
    main()
