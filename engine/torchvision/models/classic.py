"""AlexNet and VGG: convolutions, then linear layers."""

from __future__ import annotations

from typing import Any

from stridescope.engine.torch import nn
from stridescope.engine.torch.nn.modules.module import Module
from stridescope.engine.torchvision.models.resnet import without_weights

# Channels of the convolutions; M halves the size.
LAYERS: dict[int, list[int | str]] = {
    11: [64, "M", 128, "M", 256, 256, "M", 512, 512, "M", 512, 512, "M"],
    13: [64, 64, "M", 128, 128, "M", 256, 256, "M", 512, 512, "M", 512, 512, "M"],
    16: [64, 64, "M", 128, 128, "M", 256, 256, 256, "M", 512, 512, 512, "M", 512, 512, 512, "M"],
    19: [64, 64, "M", 128, 128, "M", *[256] * 4, "M", *[512] * 4, "M", *[512] * 4, "M"],
}


class AlexNet(Module):
    """Five convolutions and three linear layers."""

    def __init__(self, num_classes: int = 1000, dropout: float = 0.5) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 64, kernel_size=11, stride=4, padding=2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2),
            nn.Conv2d(64, 192, kernel_size=5, padding=2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2),
            nn.Conv2d(192, 384, kernel_size=3, padding=1), nn.ReLU(inplace=True),
            nn.Conv2d(384, 256, kernel_size=3, padding=1), nn.ReLU(inplace=True),
            nn.Conv2d(256, 256, kernel_size=3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2),
        )  # fmt: skip
        self.avgpool = nn.AdaptiveAvgPool2d((6, 6))
        self.classifier = nn.Sequential(
            nn.Dropout(p=dropout), nn.Linear(256 * 6 * 6, 4096), nn.ReLU(inplace=True), nn.Dropout(p=dropout),
            nn.Linear(4096, 4096), nn.ReLU(inplace=True), nn.Linear(4096, num_classes),
        )  # fmt: skip

    def forward(self, x: Any) -> Any:
        """Scores for each class."""
        return self.classifier(self.avgpool(self.features(x)).flatten(1))


class VGG(Module):
    """Convolutions of 3 by 3 and three linear layers."""

    def __init__(self, features: Any, num_classes: int = 1000, init_weights: bool = True, dropout: float = 0.5) -> None:
        super().__init__()
        self.features = features
        self.avgpool = nn.AdaptiveAvgPool2d((7, 7))
        self.classifier = nn.Sequential(
            nn.Linear(512 * 7 * 7, 4096), nn.ReLU(True), nn.Dropout(p=dropout), nn.Linear(4096, 4096), nn.ReLU(True),
            nn.Dropout(p=dropout), nn.Linear(4096, num_classes),
        )  # fmt: skip
        if init_weights:
            self.apply(_start)

    def forward(self, x: Any) -> Any:
        """Scores for each class."""
        return self.classifier(self.avgpool(self.features(x)).flatten(1))


def _start(module: Any) -> None:
    if isinstance(module, nn.Conv2d):
        nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
        nn.init.constant_(module.bias, 0)
    elif isinstance(module, nn.Linear):
        nn.init.normal_(module.weight, 0, 0.01)
        nn.init.constant_(module.bias, 0)


def _features(layers: list[int | str], batch_norm: bool) -> Any:
    made: list[Any] = []
    inside = 3
    for size in layers:
        if isinstance(size, str):
            made.append(nn.MaxPool2d(kernel_size=2, stride=2))
            continue
        norm = [nn.BatchNorm2d(size)] if batch_norm else []
        made += [nn.Conv2d(inside, size, kernel_size=3, padding=1), *norm, nn.ReLU(inplace=True)]
        inside = size
    return nn.Sequential(*made)


def alexnet(*, weights: Any = None, **options: Any) -> AlexNet:
    """AlexNet. Raises ValueError when weights are asked for."""
    return AlexNet(**without_weights(weights, options))


def _vgg(depth: int, batch_norm: bool) -> Any:
    def make(*, weights: Any = None, **options: Any) -> VGG:
        """VGG. Raises ValueError when weights are asked for."""
        return VGG(_features(LAYERS[depth], batch_norm), **without_weights(weights, options))

    make.__name__ = f"vgg{depth}{'_bn' if batch_norm else ''}"
    return make


vgg11, vgg13, vgg16, vgg19 = (_vgg(depth, False) for depth in LAYERS)
vgg11_bn, vgg13_bn, vgg16_bn, vgg19_bn = (_vgg(depth, True) for depth in LAYERS)
AlexNet.__module__, VGG.__module__ = "torchvision.models.alexnet", "torchvision.models.vgg"
