"""Short-time Fourier transforms: stft and istft."""

from __future__ import annotations

from typing import Any

import numpy as np

from stridescope.engine.dispatch.op import define
from stridescope.engine.dispatch.parser import Function
from stridescope.engine.dtype import FLOAT, int64, scalar_name
from stridescope.engine.ops.fourier import NONE, ROOT, c2c, c2r, r2c
from stridescope.engine.ops.lookup import op_call
from stridescope.engine.tensor import Tensor, fresh
from stridescope.engine.warn import internal, warn_once


def _optional(value: Any) -> str:
    """A setting as C++ prints it: None, or a number where Python has a bool."""
    return "None" if value is None else str(int(value))


def _shown(self: Tensor, n_fft: int, hop: int, win: int, window: Tensor | None, **options: Any) -> str:
    """How the error texts of stft begin: the call with its sizes."""
    listed = ", ".join(f"{key}={_optional(value)}" for key, value in options.items())
    seen = "None" if window is None else f"torch.{scalar_name(window.dtype)}Tensor{{{list(window.shape)}}}"
    return (
        f"stft(torch.{scalar_name(self.dtype)}Tensor{list(self.shape)}, n_fft={n_fft}, hop_length={hop}, "
        f"win_length={win}, window={seen}, {listed}) "
    )


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


_REAL = (
    "stft with return_complex=False is deprecated. In a future pytorch release, stft will return complex tensors for "
    "all inputs, and return_complex=False will raise an error.\nNote: you can still call torch.view_as_real on the "
    "complex output to recover the old return format."
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
    return_complex: bool | None = None, align_to_window: bool | None = None,
) -> Tensor:  # fmt: skip
    if window is None:
        _warn_of_no_window("which is known to cause spectral leakage. Other windows such as torch.hann_window or "
                           "torch.hamming_window are recommended to reduce spectral leakage.", ",", 835)  # fmt: skip
    hop, win = hop_length or n_fft // 4, win_length or n_fft
    if hop_length is not None:
        hop = hop_length
    head = _shown(self, n_fft, hop, win, window, normalized=normalized, onesided=onesided,
                  return_complex=return_complex, align_to_window=align_to_window)  # fmt: skip
    is_complex = self.dtype.is_complex or (window is not None and window.dtype.is_complex)
    if return_complex is None and not is_complex:
        raise RuntimeError(
            "stft requires the return_complex parameter be given for real inputs, and will further require that "
            "return_complex=True in a future PyTorch release."
        )
    if not (is_complex if return_complex is None else return_complex):
        warn_once(internal(_REAL, "aten/src/ATen/native/SpectralOps.cpp:874"))
    _check_stft(self, n_fft, hop, win, window, head)
    half = (not is_complex) if onesided is None else onesided
    if half and is_complex:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    rows = self.unsqueeze(0) if self._array.ndim == 1 else self
    frames = rows.unfold(-1, n_fft, hop)
    weights = _window(window, self, win, n_fft)
    frames = frames * weights if weights is not None else frames
    how = ROOT if normalized else NONE
    if frames.dtype.itemsize == 2:
        raise RuntimeError(f"MKL FFT doesn't support tensors of type: {scalar_name(frames.dtype)}")
    spectrum = c2c.call(frames, (2,), how, True) if is_complex else r2c.call(frames, (2,), how, half)
    spectrum = spectrum.transpose_(1, 2)
    spectrum = spectrum.squeeze_(0) if self._array.ndim == 1 else spectrum
    return spectrum if return_complex is not False else op_call("view_as_real")(spectrum)  # type: ignore[no-any-return]


_ARGUMENTS = "Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, "

_stft_op = define(
    f"stft({_ARGUMENTS}bool normalized=False, bool? onesided=None, bool? return_complex=None, "
    "bool? align_to_window=None) -> Tensor",
    doc="The spectra of overlapping windows of a signal.",
    composite=_stft,
    method=False,
    function=False,
)


def _padded(input: Tensor, n_fft: int, pad_mode: str) -> Tensor:
    """The signal continued at both ends, so that windows may stand around its first and last sample."""
    extra, ndim = int(n_fft // 2), input.dim()
    padded = op_call("pad")(input.view([1] * (3 - ndim) + list(input.shape)), [extra, extra], pad_mode)
    return padded.view(padded.shape[-ndim:])  # type: ignore[no-any-return]


def _centred(
    self: Tensor, n_fft: int, hop_length: Any, win_length: Any, window: Any, center: bool, pad_mode: str, *rest: Any
) -> Tensor:
    """stft with its padding."""
    signal = _padded(self, n_fft, pad_mode) if center else self
    return _stft_op.call(signal, n_fft, hop_length, win_length, window, *rest)  # type: ignore[no-any-return]


_centred_op = define(
    f'stft.center({_ARGUMENTS}bool center=True, str pad_mode="reflect", bool normalized=False, bool? onesided=None, '
    "bool? return_complex=None, bool? align_to_window=None) -> Tensor",
    doc="The spectra of overlapping windows of a signal, which is continued at both ends.",
    composite=_centred,
    method=False,
    function=False,
)
_stft_of = Function("stft", [_centred_op, _stft_op], method=False)


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
        input = _padded(input, n_fft, pad_mode)
    return _stft_of(  # type: ignore[no-any-return]
        input, n_fft, hop_length, win_length, window, normalized, onesided, return_complex, align_to_window
    )


def _overlapped(frames: Tensor, hop: int, size: int) -> Tensor:
    """The sum of frames, each written ``hop`` later than the one before."""
    count, n_fft = frames.shape[-2:]
    places = np.arange(n_fft) + hop * np.arange(count)[:, None]
    index = fresh(places.reshape(-1).astype(np.int64), int64, frames.device)
    flat = frames.reshape((frames.shape[0], count * n_fft))
    return flat.new_zeros((frames.shape[0], size)).index_add(1, index, flat)  # type: ignore[no-any-return]


def _istft(
    input: Tensor, n_fft: int, hop_length: int | None, win_length: int | None, window: Tensor | None, center: bool,
    normalized: bool, onesided: bool | None, length: int | None, return_complex: bool,
) -> Tensor:  # fmt: skip
    """The signal back from its spectra, by overlapping and adding."""
    if window is None:
        _warn_of_no_window("Please provide the same window used by stft to make the inversion lossless.", ".", 1035)
    if not input.dtype.is_complex:
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with return_complex=True."
        )
    hop, win = n_fft // 4 if hop_length is None else hop_length, n_fft if win_length is None else win_length
    half = input.shape[-2] != n_fft if onesided is None else onesided
    head = _inverse_shown(input, n_fft, hop, win, window, center=center, normalized=normalized, onesided=onesided,
                          length=length, return_complex=return_complex)  # fmt: skip
    _check_istft(input, n_fft, hop, win, window, half, head)
    frames = _frames(input, n_fft, window, normalized, half, return_complex)
    plain = frames.new_ones((win,), dtype=frames.dtype.to_real()) if window is None else window
    weights = _window(plain, plain, win, n_fft)
    total = n_fft + hop * (frames.shape[1] - 1)
    signal = _overlapped(frames * weights, hop, total)
    envelope = _overlapped(weights.pow(2).expand((1, frames.shape[1], n_fft)), hop, total)
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else total - start
    covered = _cut(signal, envelope, start, min(end, total), head)
    covered = covered.squeeze(0) if input._array.ndim == 2 else covered
    if end <= total:
        return covered
    warn_once(internal(
        "The length of signal is shorter than the length parameter. Result is being padded with zeros in the tail. "
        "Please check your center and hop_length settings.", "aten/src/ATen/native/SpectralOps.cpp:1196"))  # fmt: skip
    return op_call("constant_pad_nd")(covered, [0, end - total], 0)  # type: ignore[no-any-return]


def _inverse_shown(input: Tensor, n_fft: int, hop: int, win: int, window: Tensor | None, **options: Any) -> str:
    """How the error texts of istft begin."""
    listed = ", ".join(f"{key}={_optional(value)}" for key, value in options.items())
    seen = "None" if window is None else f"torch.{scalar_name(window.dtype)}Tensor{{{list(window.shape)}}}"
    return (
        f"istft(CPU{scalar_name(input.dtype)}Type{list(input.shape)}, n_fft={n_fft}, hop_length={hop}, "
        f"win_length={win}, window={seen}, {listed}) "
    )


def _check_istft(input: Tensor, n_fft: int, hop: int, win: int, window: Tensor | None, half: bool, head: str) -> None:
    rows, wanted = input.shape[-2], n_fft // 2 + 1 if half else n_fft
    if not input._array.size:
        raise RuntimeError(f"{head}: input tensor cannot be empty.")
    if input._array.ndim not in (2, 3):
        raise RuntimeError(f"{head}: expected a tensor with 3 or 4 dimensions, but got {input._array.ndim + 1}")
    if rows != wanted:
        size, flag = ("n_fft / 2 + 1", "True") if half else ("n_fft", "False")
        raise RuntimeError(
            f"{head}: expected the frequency dimension (3rd to the last) of the input tensor to match {size} when "
            f"onesided={flag}, but got {rows}"
        )
    if not 0 < hop <= win:
        raise RuntimeError(f"{head}: expected 0 < hop_length <= win_length")
    if not 0 < win <= n_fft:
        raise RuntimeError(f"{head}: expected 0 < win_length <= n_fft")
    if window is not None and (window._array.ndim != 1 or window.shape[0] != win):
        raise RuntimeError(f"{head}: Invalid window shape. window has to be 1D and length of `win_length`")


def _frames(
    input: Tensor, n_fft: int, window: Tensor | None, normalized: bool, half: bool, return_complex: bool
) -> Tensor:
    """The windows of the signal, one spectrum after another."""
    spectra = (input.unsqueeze(0) if input._array.ndim == 2 else input).transpose(1, 2)
    how = ROOT if normalized else 2
    if return_complex:
        if half:
            raise RuntimeError("Cannot have onesided output if window or input is complex")
        return c2c.call(spectra, (2,), how, False)  # type: ignore[no-any-return]
    if window is not None and window.dtype.is_complex:
        raise RuntimeError("Complex windows are incompatible with return_complex=False")
    spectra = spectra if half else spectra.narrow(2, 0, n_fft // 2 + 1)
    return c2r.call(spectra, (2,), how, n_fft)  # type: ignore[no-any-return]


def _cut(signal: Tensor, envelope: Tensor, start: int, end: int, head: str) -> Tensor:
    """The part of the signal that the windows cover, divided by what they add up to."""
    signal, envelope = signal.narrow(1, start, end - start), envelope.narrow(1, start, end - start)
    if envelope._array.size and float(np.abs(envelope._array).min()) < 1e-11:
        raise RuntimeError(f"{head}window overlap add min: 1\n[ CPUBoolType{{}} ]")
    return signal / envelope  # type: ignore[no-any-return]


define(
    f"istft({_ARGUMENTS}bool center=True, bool normalized=False, bool? onesided=None, int? length=None, "
    "bool return_complex=False) -> Tensor",
    doc="The signal back from its spectra, by overlapping and adding.",
    composite=_istft,
)
FUNCTIONS: dict[str, Any] = {"stft": stft}
METHODS: dict[str, Any] = dict(FUNCTIONS)
