"""Short-time Fourier transforms: stft and istft."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stridescope.engine.dispatch.op import define
from stridescope.engine.dtype import FLOAT, int64
from stridescope.engine.ops.fourier import NONE, ROOT, c2c, c2r, r2c
from stridescope.engine.ops.lookup import op_call
from stridescope.engine.tensor import Tensor, fresh
from stridescope.engine.warn import internal, warn_once


def _shown(name: str, tensor: Tensor, **options: Any) -> str:
    """How the error texts begin: the call with its sizes."""
    kind = tensor.dtype.name.replace("float32", "Float").replace("float64", "Double")
    listed = ", ".join(f"{key}={value}" for key, value in options.items())
    return f"{name}(torch.{kind}Tensor{list(tensor.shape)}, {listed})"


def _window(window: Tensor | None, like: Tensor, length: int, n_fft: int) -> Any:
    """The window, widened by zeros on both sides to ``n_fft``."""
    if length >= n_fft:
        return window
    left = (n_fft - length) // 2
    whole = like.new_zeros((n_fft,), dtype=window.dtype if window is not None else None)
    whole.narrow(0, left, length).copy_(window if window is not None else whole.new_ones((length,)))
    return whole


def _check_stft(self: Tensor, n_fft: int, hop: int, win: int, window: Tensor | None, head: str) -> None:
    if self.dtype.category < FLOAT:
        raise RuntimeError(f"{head}: expected a tensor of floating point or complex values")
    if not 1 <= self._array.ndim <= 2:
        raise RuntimeError(f"{head}: expected a 1D or 2D tensor")
    size = self.shape[-1]
    if not 0 < n_fft <= size:
        raise RuntimeError(f"{head}: expected 0 < n_fft < {size}, but got n_fft={win}")
    if hop <= 0:
        raise RuntimeError(f"{head}: expected hop_length > 0, but got hop_length={hop}")
    if not 0 < win <= n_fft:
        raise RuntimeError(f"{head}: expected 0 < win_length <= n_fft, but got win_length={win}")
    if window is not None and (window._array.ndim != 1 or window.shape[0] != win):
        raise RuntimeError(
            f"{head}: expected a 1D window tensor of size equal to win_length={win}, but got window with size "
            f"{list(window.shape)}"
        )


def _warn_of_no_window(advice: str, joint: str, line: int) -> None:
    warn_once(
        internal(
            f"A window was not provided. A rectangular window will be applied{joint}{advice}To suppress this warning "
            "and use a rectangular window, explicitly set `window=torch.ones(n_fft, device=<device>)`.",
            f"aten/src/ATen/native/SpectralOps.cpp:{line}",
        )
    )


def _stft(
    self: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
    window: Tensor | None = None, normalized: bool = False, onesided: bool | None = None,
    return_complex: bool | None = None,
) -> Tensor:  # fmt: skip
    hop, win = hop_length or n_fft // 4, win_length or n_fft
    if hop_length is not None:
        hop = hop_length
    head = _shown("stft", self, n_fft=n_fft, hop_length=hop, win_length=win, window=window)
    is_complex = self.dtype.is_complex or (window is not None and window.dtype.is_complex)
    if return_complex is None and not is_complex:
        raise RuntimeError(
            "stft requires the return_complex parameter be given for real inputs, and will further require that "
            "return_complex=True in a future PyTorch release."
        )
    _check_stft(self, n_fft, hop, win, window, head)
    if window is None:
        _warn_of_no_window("which is known to cause spectral leakage. Other windows such as torch.hann_window or "
                           "torch.hamming_window are recommended to reduce spectral leakage.", ",", 835)  # fmt: skip
    half = (not is_complex) if onesided is None else onesided
    if half and is_complex:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    rows = self.unsqueeze(0) if self._array.ndim == 1 else self
    frames = rows.unfold(-1, n_fft, hop)
    weights = _window(window, self, win, n_fft)
    frames = frames * weights if weights is not None else frames
    how = ROOT if normalized else NONE
    spectrum = c2c.call(frames, (2,), how, True) if is_complex else r2c.call(frames, (2,), how, half)
    spectrum = spectrum.transpose_(1, 2)
    spectrum = spectrum.squeeze_(0) if self._array.ndim == 1 else spectrum
    return spectrum if return_complex is not False else op_call("view_as_real")(spectrum)  # type: ignore[no-any-return]


_ARGUMENTS = "Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, "

_stft_op = define(
    f"_stft({_ARGUMENTS}bool normalized=False, bool? onesided=None, bool? return_complex=None) -> Tensor",
    doc="The spectra of overlapping windows of a signal.",
    composite=_stft,
    method=False,
    function=False,
)


def stft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    """``torch.stft``: the spectra of overlapping windows of a signal."""
    if align_to_window is not None and center:
        raise RuntimeError(
            "stft align_to_window should only be set when center = false. Centered stft assumes that the windows are "
            "centered at each sample"
        )
    if center:
        extra = n_fft // 2
        ndim = input._array.ndim
        shaped = input.view([1] * (3 - ndim) + list(input.shape))
        padded = op_call("pad")(shaped, [extra, extra], pad_mode)
        input = padded.view(padded.shape[-ndim:])
    return _stft_op.call(input, n_fft, hop_length, win_length, window, normalized, onesided, return_complex)  # type: ignore[no-any-return]


def _overlapped(frames: Tensor, hop: int, size: int) -> Tensor:
    """The sum of frames, each written ``hop`` later than the one before."""
    count, n_fft = frames.shape[-2:]
    places = np.arange(n_fft) + hop * np.arange(count)[:, None]
    index = fresh(places.reshape(-1).astype(np.int64), int64, frames.device)
    flat = frames.reshape((frames.shape[0], count * n_fft))
    return flat.new_zeros((frames.shape[0], size)).index_add(1, index, flat)  # type: ignore[no-any-return]


def istft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """``torch.istft``: the signal back from its spectra, by overlapping and adding."""
    if not input.dtype.is_complex:
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with return_complex=True."
        )
    if window is None:
        _warn_of_no_window("Please provide the same window used by stft to make the inversion lossless.", ".", 1035)
    hop, win = n_fft // 4 if hop_length is None else hop_length, n_fft if win_length is None else win_length
    half = input.shape[-2] != n_fft if onesided is None else onesided
    spectra = (input.unsqueeze(0) if input._array.ndim == 2 else input).transpose(1, 2)
    how = ROOT if normalized else 2
    if return_complex:
        frames = c2c.call(spectra, (2,), how, False)
    else:
        spectra = spectra if half else spectra.narrow(2, 0, n_fft // 2 + 1)
        frames = c2r.call(spectra, (2,), how, n_fft)
    plain = frames.new_ones((win,)) if window is None else window
    weights = _window(plain, plain, win, n_fft)
    total = n_fft + hop * (frames.shape[1] - 1)
    signal = _overlapped(frames * weights, hop, total)
    square = (weights * weights).expand((1, frames.shape[1], n_fft))
    envelope = _overlapped(square.to(frames.dtype.to_real()), hop, total)
    return _cut(signal, envelope, input, n_fft if center else 0, length)


def _cut(signal: Tensor, envelope: Tensor, input: Tensor, margin: int, length: int | None) -> Tensor:
    """The part of the signal that the windows cover, divided by what they add up to."""
    start = margin // 2
    end = start + length if length is not None else signal.shape[-1] - (margin - start if margin else 0)
    end = min(end, signal.shape[-1])
    signal, envelope = signal.narrow(1, start, end - start), envelope.narrow(1, start, end - start)
    lowest = float(envelope.abs().min().item()) if envelope._array.size else math.inf
    if lowest <= 1e-11:
        raise RuntimeError(f"istft(...) window overlap add min: {lowest}")
    result: Tensor = signal / envelope
    return result.squeeze(0) if input._array.ndim == 2 else result


FUNCTIONS: dict[str, Any] = {"stft": stft, "istft": istft}
METHODS: dict[str, Any] = dict(FUNCTIONS)
