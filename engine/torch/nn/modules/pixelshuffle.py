"""Rearranging pixels and channels."""

from __future__ import annotations

from stridescope.engine.torch.nn import functional as F
from stridescope.engine.torch.nn.modules._factory import named_as
from stridescope.engine.torch.nn.modules._function import _AppliedToOne


class PixelShuffle(_AppliedToOne):
    """Groups of channels become blocks of pixels."""

    _function, _passed, _shown = F.pixel_shuffle, ("upscale_factor",), "upscale_factor={upscale_factor}"

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor


class PixelUnshuffle(_AppliedToOne):
    """Blocks of pixels become groups of channels."""

    _function, _passed, _shown = F.pixel_unshuffle, ("downscale_factor",), "downscale_factor={downscale_factor}"

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor


class ChannelShuffle(_AppliedToOne):
    """Channels of different groups, interleaved."""

    _function, _passed, _shown = F.channel_shuffle, ("groups",), "groups={groups}"

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups


named_as("pixelshuffle", globals())
ChannelShuffle.__module__ = "torch.nn.modules.channelshuffle"
