"""``torchvision.models``: architectures; no weights are downloaded."""

from __future__ import annotations

from stridescope.engine.torch._not_yet import attribute_of
from stridescope.engine.torchvision.models.resnet import ResNet, resnet18, resnet34, resnet50

__getattr__ = attribute_of("torchvision.models")

__all__ = ["ResNet", "resnet18", "resnet34", "resnet50"]
