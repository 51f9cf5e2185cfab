# mypy: ignore-errors
"""What the PyTorch trainings share: loader, order of the samples, steps with averaged gradients."""

from __future__ import annotations

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, Sampler


class Shard(Sampler):
    """This rank's part of a permutation that is drawn anew in each epoch, as DistributedSampler's."""

    def __init__(self, samples: int, ranks, shuffle: bool, seed: int) -> None:
        self._samples, self._ranks, self._shuffle, self.epoch, self._seed = samples, ranks, shuffle, 0, seed

    def __len__(self) -> int:
        return self._samples // self._ranks.size

    def __iter__(self):
        generator = torch.Generator().manual_seed(self._seed + self.epoch)
        order = (
            torch.randperm(self._samples, generator=generator)
            if self._shuffle
            else torch.arange(self._samples)
        )
        yield from self._ranks.share(order.tolist())


def learn(options, ranks, spans, samples: Dataset, make_model, loss_of) -> list[float]:
    """Train the model that `make_model` returns on `samples` and return the loss of each step."""
    torch.manual_seed(options.seed)
    torch.set_num_threads(1)  # the other cores belong to the loader's workers
    model, losses = make_model(), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    in_turn = isinstance(samples, IterableDataset)  # which has an order, and ranks, of its own
    sampler = None if in_turn else Shard(len(samples), ranks, options.shuffle, options.seed)
    workers = options.read_threads
    ahead = -(-options.prefetch_size // workers) if workers else None
    loader = DataLoader(
        samples, options.batch_size, sampler=sampler, num_workers=workers, drop_last=True,
        **({"prefetch_factor": max(1, ahead), "persistent_workers": True} if workers else {}),
    )  # fmt: skip

    def step(values, labels) -> None:
        loss = loss_of(model(values), labels)
        optimizer.zero_grad()
        loss.backward()
        flat = torch.cat([p.grad.reshape(-1) for p in model.parameters()]).numpy()
        ranks.mean(flat)
        place = 0
        for parameter in model.parameters():
            part = flat[place : place + parameter.numel()]
            parameter.grad.copy_(torch.from_numpy(part).view_as(parameter))
            place += parameter.numel()
        optimizer.step()
        losses.append(float(loss.detach()))

    def epoch() -> None:
        for values, labels in spans.fetched(loader):
            spans.computed("Torch", step, values, labels)

    for number in range(options.epochs):
        if sampler:
            sampler.epoch = number
        spans.epoch(epoch)
    return losses
