"""``torchvision.models``: architectures; no weights are downloaded."""

from __future__ import annotations

from stridescope.engine.torch._not_yet import attribute_of
from stridescope.engine.torchvision.models.classic import (
    VGG,
    AlexNet,
    alexnet,
    vgg11,
    vgg11_bn,
    vgg13,
    vgg13_bn,
    vgg16,
    vgg16_bn,
    vgg19,
    vgg19_bn,
)
from stridescope.engine.torchvision.models.resnet import (
    ResNet,
    resnet18,
    resnet34,
    resnet50,
    resnet101,
    resnet152,
)

__getattr__ = attribute_of("torchvision.models")

__all__ = [
    "VGG", "AlexNet", "ResNet", "alexnet", "resnet101", "resnet152", "resnet18", "resnet34", "resnet50", "vgg11",
    "vgg11_bn", "vgg13", "vgg13_bn", "vgg16", "vgg16_bn", "vgg19", "vgg19_bn",
]  # fmt: skip
