"""What course scripts use of torchvision, without a download."""

from __future__ import annotations

import pathlib

import pytest

from stridescope.engine import torch, torchvision
from stridescope.engine.torchvision import datasets, models, transforms, utils


def test_normalising_shifts_and_scales():
    image = torch.full((3, 4, 4), 0.75)
    assert transforms.Normalize((0.5,) * 3, (0.5,) * 3)(image).unique().tolist() == [0.5]


def test_a_crop_is_taken_from_the_middle():
    image = torch.arange(36.0).reshape(1, 6, 6)
    assert transforms.CenterCrop(2)(image).tolist() == [[[14.0, 15.0], [20.0, 21.0]]]


def test_fake_data_is_the_same_every_time():
    fake = datasets.FakeData(size=4, image_size=(3, 8, 8), num_classes=2, transform=transforms.ToTensor())
    image, _ = fake[0]
    assert len(fake) == 4 and tuple(image.shape) == (3, 8, 8)
    assert torch.equal(image, fake[0][0])


def test_resnet18_has_the_published_number_of_parameters():
    model = models.resnet18(num_classes=1000)
    assert sum(p.numel() for p in model.parameters()) == 11_689_512
    assert tuple(model.eval()(torch.rand(1, 3, 64, 64)).shape) == (1, 1000)


def test_a_grid_has_borders_of_two():
    assert tuple(utils.make_grid(torch.rand(4, 3, 8, 8)).shape) == (3, 12, 42)


def test_nothing_is_downloaded(tmp_path: pathlib.Path):
    with pytest.raises(RuntimeError, match="MNIST is not in .*, and Stridescope downloads nothing"):
        datasets.MNIST(str(tmp_path), download=True)


def test_it_has_a_version():
    assert torchvision.__version__
