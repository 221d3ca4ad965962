"""What course scripts use of torchvision, without a download."""

from __future__ import annotations

import pathlib
import sys

import pytest

from stridescope.engine import torch, torchvision
from stridescope.engine.torchvision import datasets, models, transforms, utils
from stridescope.engine.torchvision.models import classic


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


def test_alexnet_and_vgg_have_the_published_numbers_of_parameters():
    assert sum(p.numel() for p in models.alexnet().parameters()) == 61_100_840
    sixteen, eleven = (classic._features(classic.LAYERS[depth], depth == 11) for depth in (16, 11))
    assert sum(p.numel() for p in sixteen.parameters()) == 14_714_688 and len(eleven) == 29
    with pytest.raises(ValueError, match="downloads no weights"):
        models.vgg16(weights="DEFAULT")


def test_a_hue_turned_once_around_is_the_same():
    image = torch.rand(3, 5, 6)
    turned = transforms.functional.adjust_hue(transforms.functional.adjust_hue(image, 0.3), -0.3)
    assert torch.allclose(turned, image, atol=1e-5)
    third = transforms.functional.adjust_hue(torch.tensor([1.0, 0.0, 0.0]).view(3, 1, 1), 1 / 3)
    assert torch.allclose(third.flatten(), torch.tensor([0.0, 1.0, 0.0]), atol=1e-5)


def test_colours_are_adjusted_by_the_documented_formulas():
    image = torch.tensor([0.2, 0.4, 0.8]).view(3, 1, 1)
    grey = 0.2989 * 0.2 + 0.587 * 0.4 + 0.114 * 0.8
    assert transforms.functional.adjust_brightness(image, 2.0).flatten().tolist() == pytest.approx([0.4, 0.8, 1.0])
    assert transforms.functional.adjust_saturation(image, 0.0).flatten().tolist() == pytest.approx([grey] * 3)
    assert transforms.functional.adjust_contrast(image, 0.5).flatten().tolist() == pytest.approx(
        [(value + grey) / 2 for value in (0.2, 0.4, 0.8)]
    )
    assert transforms.functional.invert(image).flatten().tolist() == pytest.approx([0.8, 0.6, 0.2])


def test_a_quarter_turn_moves_every_pixel():
    image = torch.arange(9.0).reshape(1, 3, 3)
    assert transforms.functional.rotate(image, 90)[0].tolist() == image[0].rot90().tolist()


def test_a_blur_keeps_the_sum_inside_and_an_even_kernel_is_refused():
    image = torch.zeros(1, 9, 9)
    image[0, 4, 4] = 1.0
    blurred = transforms.functional.gaussian_blur(image, 3, 0.8)
    assert blurred.sum().item() == pytest.approx(1.0) and blurred[0, 4, 4] == blurred.max()
    with pytest.raises(ValueError, match="odd and positive"):
        transforms.functional.gaussian_blur(image, 4)


@pytest.mark.parametrize(
    "transform",
    [
        transforms.RandomResizedCrop(8), transforms.RandomRotation(30), transforms.ColorJitter(0.4, 0.4, 0.4, 0.1),
        transforms.RandomGrayscale(0.5), transforms.GaussianBlur(3), transforms.RandomErasing(p=0.9),
        transforms.RandomApply([transforms.ColorJitter(0.5)], p=0.5), transforms.RandomInvert(),
    ],
    ids=lambda transform: type(transform).__name__,
)  # fmt: skip
def test_random_transforms_follow_the_seed(transform: object):
    image = torch.rand(3, 12, 10)
    torch.manual_seed(3)
    first = [transform(image) for _ in range(16)]
    torch.manual_seed(3)
    again = [transform(image) for _ in range(16)]
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert any(not torch.equal(a, first[0]) for a in first[1:])
    picture = transforms.ToPILImage()(image)
    assert isinstance(transform, transforms.RandomErasing) or transform(picture).mode == "RGB"


def test_both_versions_share_their_transforms():
    assert transforms.v2.RandomResizedCrop is transforms.RandomResizedCrop
    assert [tuple(part.shape) for part in transforms.FiveCrop(4)(torch.rand(3, 8, 9))] == [(3, 4, 4)] * 5


def test_without_pillow_one_line_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ImportError, match="pip install pillow"):
        transforms.ToPILImage()(torch.rand(3, 2, 2))
