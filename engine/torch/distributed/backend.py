"""``Backend``: the names of what carries tensors between processes. Here it is ``gloo``: sockets, for the CPU."""

from __future__ import annotations

from typing import Any, ClassVar

from stridescope.engine.device import device as torch_device
from stridescope.engine.warn import warn

_ELSEWHERE = ("nccl", "xccl", "ucc")
_NO_MPI = (
    "Distributed package doesn't have MPI built in. MPI is only included if you build PyTorch from source on a host "
    "that has MPI installed."
)


class Backend(str):
    """A backend's name in lower case, as a text."""

    UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI, FAKE = "undefined", "gloo", "nccl", "xccl", "ucc", "mpi", "fake"
    backend_list: ClassVar[list[str]] = [UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI, FAKE]
    default_device_backend_map: ClassVar[dict[str, str]] = {"cpu": GLOO, "cuda": NCCL, "xpu": XCCL, "mps": GLOO}

    def __new__(cls, name: Any) -> Any:
        """The name in lower case; raises ValueError when it is no text."""
        if not isinstance(name, str):
            raise ValueError("Backend constructor parameter must be string-ish")
        return getattr(cls, name.upper()) if name.lower() in cls.backend_list else name.lower()

    @classmethod
    def register_backend(cls, name: str, func: Any, extended_api: bool = False, devices: Any = None) -> None:
        """Raises NotImplementedError: backends of one's own are not here."""
        raise NotImplementedError("torch.distributed.Backend.register_backend is not in Stridescope yet")


class BackendConfig:
    """Which backend serves which kind of device."""

    def __init__(self, backend: str) -> None:
        self.device_backend_map: dict[str, str] = {}
        if backend == Backend.UNDEFINED:
            self.device_backend_map = {"cpu": Backend.GLOO}
        elif ":" in backend:
            self.device_backend_map = dict(_pair(pair, backend) for pair in backend.lower().split(","))
        elif backend == Backend.GLOO:
            self.device_backend_map = {"cpu": Backend.GLOO, "cuda": Backend.GLOO}
        else:
            self.device_backend_map = {"cpu": backend, "cuda": backend}
            if backend not in Backend.backend_list:
                warn(
                    f"Device capability of {backend} unknown, assuming `cpu` and `cuda`. You can specify it in "
                    "`device:backend` format in `init_process_group` call."
                )

    def get_device_backend_map(self) -> dict[str, str]:
        """The backend of each kind of device."""
        return self.device_backend_map

    def __repr__(self) -> str:
        return ",".join(f"{place}:{name}" for place, name in self.device_backend_map.items())


def _pair(pair: str, whole: str) -> tuple[str, str]:
    if pair.count(":") != 1:
        raise ValueError(
            f"The custom backend string argument is invalid: {whole}.\nCustom backend string is an experimental "
            'feature where the backend string must be in the format:\n"<device_type1>:<backend1>,<device_type2>:'
            "<backend2>...\". e.g. 'cpu:gloo,cuda:nccl'"
        )
    place, _, name = pair.partition(":")
    return place, name


def check_backend(backend: str) -> BackendConfig:
    """The backends that are meant; raises RuntimeError for one of PyTorch's that is not built in."""
    config = BackendConfig(backend)
    for name in config.device_backend_map.values():
        if name == Backend.MPI:
            raise RuntimeError(_NO_MPI)
        if name in _ELSEWHERE:
            raise RuntimeError(f"Distributed package doesn't have {name.upper()} built in")
        if name == Backend.FAKE:
            raise AssertionError("Unknown c10d backend type FAKE")
        if name != Backend.GLOO:
            raise AssertionError(f"Unknown backend type {name}")
    return config


def get_default_backend_for_device(device: Any) -> str:
    """The backend that PyTorch uses for a device."""
    kind = torch_device(device).type
    if kind not in Backend.default_device_backend_map:
        raise ValueError(f"Default backend not registered for device : {device}")
    return Backend.default_device_backend_map[kind]


def is_backend_available(backend: str) -> bool:
    """Whether a process group can use it."""
    return backend.lower() == Backend.GLOO


def is_gloo_available() -> bool:
    """Yes."""
    return True


def _no() -> bool:
    """No: what it asks about is not here."""
    return False


is_nccl_available = is_mpi_available = is_ucc_available = is_xccl_available = _no
Backend.__module__ = BackendConfig.__module__ = "torch.distributed.distributed_c10d"
