# mypy: ignore-errors
# ruff: noqa: E402 (warnings are silenced, and paths set, before the imports)
"""Trains a ResNet on JPEG or PNG files with PyTorch, data-parallel: a real application to compare with.

The network is ResNet-50 (He et al., 2016) of an eighth of its width, on images of 64 x 64: what matters here
is that the files are read, decoded and learned from as PyTorch programs do it.
"""

from __future__ import annotations

import warnings

import numpy as np

warnings.filterwarnings("ignore")
import torch
from common import files_in, run
from learn_torch import learn
from PIL import Image
from torch import nn
from torch.utils.data import Dataset

SIDE, CLASSES, WIDTH = 64, 10, 8


class Images(Dataset):
    """Image files as torchvision's ImageFolder reads them; the label is drawn from the file's number."""

    def __init__(self, files: list[str]) -> None:
        self._files = files

    def __len__(self) -> int:
        return len(self._files)

    def __getitem__(self, index: int):
        with open(self._files[index], "rb") as file:  # noqa: PTH123 (as torchvision's loader does it)
            image = Image.open(file).convert("RGB").resize((SIDE, SIDE))
        pixels = torch.from_numpy(np.asarray(image).copy()).permute(2, 0, 1).float() / 255
        return pixels, index * 7919 % CLASSES


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
    return learn(
        options,
        ranks,
        spans,
        Images(files_in(options.data, options.format)),
        resnet50,
        nn.functional.cross_entropy,
    )


if __name__ == "__main__":
    run(__doc__.splitlines()[0], train)
