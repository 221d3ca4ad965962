"""Residual networks, without weights."""

from __future__ import annotations

import importlib
from typing import Any

from stridescope.engine.torch.nn.modules.module import Module

nn: Any = importlib.import_module("stridescope.engine.torch.nn")


def _conv3x3(inside: int, outside: int, stride: int = 1) -> Any:
    return nn.Conv2d(inside, outside, kernel_size=3, stride=stride, padding=1, bias=False)


class BasicBlock(Module):
    """Two convolutions, and a way around them."""

    expansion = 1

    def __init__(self, inplanes: int, planes: int, stride: int = 1, downsample: Any = None) -> None:
        super().__init__()
        self.conv1 = _conv3x3(inplanes, planes, stride)
        self.bn1 = nn.BatchNorm2d(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = _conv3x3(planes, planes)
        self.bn2 = nn.BatchNorm2d(planes)
        self.downsample = downsample
        self.stride = stride

    def forward(self, x: Any) -> Any:
        """Both ways, summed."""
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += x if self.downsample is None else self.downsample(x)
        return self.relu(out)


class Bottleneck(Module):
    """A narrow convolution between two that change the number of channels, and a way around them."""

    expansion = 4

    def __init__(self, inplanes: int, planes: int, stride: int = 1, downsample: Any = None) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inplanes, planes, kernel_size=1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = _conv3x3(planes, planes, stride)
        self.bn2 = nn.BatchNorm2d(planes)
        self.conv3 = nn.Conv2d(planes, planes * self.expansion, kernel_size=1, bias=False)
        self.bn3 = nn.BatchNorm2d(planes * self.expansion)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = downsample
        self.stride = stride

    def forward(self, x: Any) -> Any:
        """Both ways, summed."""
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        out += x if self.downsample is None else self.downsample(x)
        return self.relu(out)


class ResNet(Module):
    """Four groups of blocks, each but the first at half the size."""

    def __init__(self, block: Any, layers: list[int], num_classes: int = 1000) -> None:
        super().__init__()
        self.inplanes = 64
        self.conv1 = nn.Conv2d(3, 64, kernel_size=7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
        self.layer1 = self._make_layer(block, 64, layers[0], 1)
        self.layer2 = self._make_layer(block, 128, layers[1], 2)
        self.layer3 = self._make_layer(block, 256, layers[2], 2)
        self.layer4 = self._make_layer(block, 512, layers[3], 2)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(512 * block.expansion, num_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def _make_layer(self, block: Any, planes: int, blocks: int, stride: int) -> Any:
        outside, downsample = planes * block.expansion, None
        if stride != 1 or self.inplanes != outside:
            shrink = nn.Conv2d(self.inplanes, outside, kernel_size=1, stride=stride, bias=False)
            downsample = nn.Sequential(shrink, nn.BatchNorm2d(outside))
        made = [block(self.inplanes, planes, stride, downsample)]
        self.inplanes = outside
        made += [block(outside, planes) for _ in range(1, blocks)]
        return nn.Sequential(*made)

    def forward(self, x: Any) -> Any:
        """Scores for each class."""
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(self.avgpool(x).flatten(1))


def without_weights(weights: Any, options: dict[str, Any]) -> dict[str, Any]:
    """The options of a model; raises ValueError when weights are asked for."""
    options.pop("progress", None)
    if options.pop("pretrained", False) or weights is not None:
        raise ValueError("Stridescope downloads no weights: use weights=None, then load_state_dict of a file you have")
    return options


def _made(block: Any, layers: list[int], weights: Any, options: dict[str, Any]) -> ResNet:
    return ResNet(block, layers, **without_weights(weights, options))


def resnet18(*, weights: Any = None, **options: Any) -> ResNet:
    """18 layers. Raises ValueError when weights are asked for."""
    return _made(BasicBlock, [2, 2, 2, 2], weights, options)


def resnet34(*, weights: Any = None, **options: Any) -> ResNet:
    """34 layers. Raises ValueError when weights are asked for."""
    return _made(BasicBlock, [3, 4, 6, 3], weights, options)


def resnet50(*, weights: Any = None, **options: Any) -> ResNet:
    """50 layers. Raises ValueError when weights are asked for."""
    return _made(Bottleneck, [3, 4, 6, 3], weights, options)


def resnet101(*, weights: Any = None, **options: Any) -> ResNet:
    """101 layers. Raises ValueError when weights are asked for."""
    return _made(Bottleneck, [3, 4, 23, 3], weights, options)


def resnet152(*, weights: Any = None, **options: Any) -> ResNet:
    """152 layers. Raises ValueError when weights are asked for."""
    return _made(Bottleneck, [3, 8, 36, 3], weights, options)


for _kind in (BasicBlock, Bottleneck, ResNet):
    _kind.__module__ = "torchvision.models.resnet"
