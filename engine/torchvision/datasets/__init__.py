"""``torchvision.datasets``: from files that are there; nothing is downloaded."""

from __future__ import annotations

from stridescope.engine.torch._not_yet import attribute_of
from stridescope.engine.torchvision.datasets.cifar import CIFAR10, CIFAR100
from stridescope.engine.torchvision.datasets.folder import FakeData, ImageFolder
from stridescope.engine.torchvision.datasets.mnist import MNIST, FashionMNIST
from stridescope.engine.torchvision.datasets.vision import VisionDataset

__getattr__ = attribute_of("torchvision.datasets")

__all__ = ["CIFAR10", "CIFAR100", "FakeData", "FashionMNIST", "ImageFolder", "MNIST", "VisionDataset"]
