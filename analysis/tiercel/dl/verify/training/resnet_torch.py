# mypy: ignore-errors
# ruff: noqa: E402 (warnings are silenced, and paths set, before the imports)
"""Trains a ResNet on JPEG files with PyTorch, data-parallel: a real application to compare with.

The network is ResNet-50 (He et al., 2016) of an eighth of its width, on images of 64 x 64: what matters here
is that the files are read, decoded and learned from as PyTorch programs do it.
"""

from __future__ import annotations

import warnings

import numpy as np

warnings.filterwarnings("ignore")
import torch
from common import files_in, run
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset, Sampler

SIDE, CLASSES, WIDTH = 64, 10, 8


class Images(Dataset):
    """JPEG files as torchvision's ImageFolder reads them; the label is drawn from the file's number."""

    def __init__(self, files: list[str]) -> None:
        self._files = files

    def __len__(self) -> int:
        return len(self._files)

    def __getitem__(self, index: int):
        with open(self._files[index], "rb") as file:  # noqa: PTH123 (as torchvision's loader does it)
            image = Image.open(file).convert("RGB").resize((SIDE, SIDE))
        pixels = torch.from_numpy(np.asarray(image).copy()).permute(2, 0, 1).float() / 255
        return pixels, index * 7919 % CLASSES


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


class Bottleneck(nn.Module):
    def __init__(self, before: int, width: int, stride: int) -> None:
        super().__init__()
        after = width * 4
        self.body = nn.Sequential(
            nn.Conv2d(before, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, after, 1, bias=False), nn.BatchNorm2d(after),
        )  # fmt: skip
        same = before == after and stride == 1
        self.shortcut = nn.Identity() if same else nn.Conv2d(before, after, 1, stride, bias=False)

    def forward(self, x):
        return torch.relu(self.body(x) + self.shortcut(x))


def resnet50() -> nn.Module:
    layers = [
        nn.Conv2d(3, WIDTH, 7, 2, 3, bias=False),
        nn.BatchNorm2d(WIDTH),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
    ]
    before = WIDTH
    for stage, blocks in enumerate((3, 4, 6, 3)):
        width = WIDTH << stage
        for block in range(blocks):
            layers.append(Bottleneck(before, width, 2 if stage and not block else 1))
            before = width * 4
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, CLASSES))


def train(options, ranks, spans) -> list[float]:
    torch.manual_seed(options.seed)
    torch.set_num_threads(1)  # the other cores belong to the loader's workers
    files = files_in(options.data, "jpeg")
    model, losses = resnet50(), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    sampler = Shard(len(files), ranks, options.shuffle, options.seed)
    workers = options.read_threads
    ahead = -(-options.prefetch_size // workers) if workers else None
    loader = DataLoader(
        Images(files), options.batch_size, sampler=sampler, num_workers=workers, drop_last=True,
        **({"prefetch_factor": max(1, ahead), "persistent_workers": True} if workers else {}),
    )  # fmt: skip

    def step(pixels, labels) -> None:
        loss = nn.functional.cross_entropy(model(pixels), labels)
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
        for pixels, labels in spans.fetched(loader):
            spans.computed("Torch", step, pixels, labels)

    for number in range(options.epochs):
        sampler.epoch = number
        spans.epoch(epoch)
    return losses


if __name__ == "__main__":
    run(__doc__.splitlines()[0], train)
