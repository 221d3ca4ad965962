"""What PyTorch has and Stridescope has not: asking for it says so by name."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from typing import Any, NoReturn

from stridescope.engine.torch._more_names import MORE

FUNCTIONS = (
    "batch_norm_backward_elemt", "batch_norm_backward_reduce", "batch_norm_elemt",
    "batch_norm_gather_stats", "batch_norm_gather_stats_with_counts", "batch_norm_stats", "batch_norm_update_stats",
    "choose_qparams_optimized", "cond", "conv_tbc", "dequantize", "dsmm", "empty_quantized",
    "fake_quantize_per_channel_affine", "fake_quantize_per_tensor_affine", "fork",
    "from_file", "fused_moving_avg_obs_fake_quant", "hsmm", "hspmm", "int_repr", "lobpcg",
    "native_channel_shuffle", "native_norm",
    "q_per_channel_axis", "q_per_channel_scales", "q_per_channel_zero_points", "q_scale", "q_zero_point",
    "quantize_per_channel", "quantize_per_tensor", "quantize_per_tensor_dynamic", "quantized_batch_norm",
    "quantized_gru", "quantized_gru_cell", "quantized_lstm", "quantized_lstm_cell", "quantized_max_pool1d",
    "quantized_max_pool2d", "quantized_max_pool3d", "quantized_rnn_relu_cell", "quantized_rnn_tanh_cell",
    "resize_as_sparse_", "saddmm", "segment_reduce", "slice_inverse", "smm", "sparse_bsc_tensor",
    "sparse_bsr_tensor", "sparse_compressed_tensor", "sparse_coo_tensor", "sparse_csc_tensor", "sparse_csr_tensor",
    "sspaddmm", "wait", "while_loop",
)  # fmt: skip
# Public names of PyTorch's modules that are not here.
NAMES: dict[str, tuple[str, ...]] = {
    "torch.nn": ("Container", "intrinsic", "qat", "quantizable", "quantized"),
    "torch.nn.functional": (
        "ScalingType", "SwizzleType", "conv_tbc", "grouped_mm", "native_channel_shuffle", "scaled_grouped_mm",
        "scaled_mm",
    ),
    "torch.nn.attention": (
        "activate_flash_attention_impl", "bias", "current_flash_attention_impl", "flex_attention",
        "list_flash_attention_impls", "register_flash_attention_impl", "restore_flash_attention_impl", "varlen",
    ),
    "torch.nn.parallel": (
        "DistributedDataParallelCPU", "comm", "gather", "parallel_apply", "replicate", "scatter", "scatter_gather",
    ),
    "torch.distributed.algorithms": ("join", "model_averaging"),
    "torch.distributed.algorithms.ddp_comm_hooks": (
        "DDPCommHookType", "debugging_hooks", "optimizer_overlap_hooks", "post_localSGD_hook", "powerSGD_hook",
        "quantization_hooks", "register_ddp_comm_hook",
    ),
    "torch.optim": ("swap_in_optimizer_params_and_state",),
    "torch.utils.data": (
        "DFIterDataPipe", "DataChunk", "IterDataPipe", "MapDataPipe", "argument_validation", "datapipes",
        "functional_datapipe", "graph", "graph_settings", "guaranteed_datapipes_determinism", "non_deterministic",
        "runtime_validation", "runtime_validation_disabled",
    ),
    "torch.utils": (
        "ThroughputBenchmark", "backend_registration", "bottleneck", "bundled_inputs", "collect_env",
        "cpp_extension", "file_baton", "_device", "_foreach_utils", "viz",
        "show_pickle", "mkldnn", "mobile_optimizer", "model_zoo", "throughput_benchmark",
        "weak",
    ),
    "torch.masked": ("MaskedTensor", "as_masked_tensor", "is_masked_tensor", "masked_tensor"),
    "torch.func": ("rearrange",),
    "torch.serialization": (
        "LoadEndianness", "get_crc32_options", "get_default_load_endianness", "get_default_mmap_options",
        "get_unsafe_globals_in_checkpoint", "register_package", "set_crc32_options", "set_default_load_endianness",
        "set_default_mmap_options", "skip_data",
    ),
    "torch.cuda": (
        "BFloat16Storage", "BoolStorage", "ByteStorage", "CharStorage", "ComplexDoubleStorage", "ComplexFloatStorage",
        "DoubleStorage", "FloatStorage", "GreenContext", "HalfStorage", "IntStorage", "LongStorage", "ShortStorage",
        "comm", "current_blas_handle", "current_solver_handle", "gds", "green_contexts", "jiterator",
        "make_graphed_callables", "nccl", "sparse", "tunable",
    ),
    "torch.distributed": (
        "DebugLevel", "DeviceMesh", "Logger", "ProcessGroupGloo", "Reducer", "argparse_util", "autograd", "breakpoint",
        "c10d_logger", "checkpoint", "collective_utils", "config", "debug", "device_mesh", "elastic",
        "flight_recorder", "fsdp", "get_debug_level", "init_device_mesh", "launch", "launcher", "logging_handlers",
        "nn", "optim", "pipelining", "record_comm", "remote_device", "rpc", "run", "set_debug_level",
        "set_debug_level_from_env", "shrink_group", "split_group", "tensor", "utils",
    ),
    "torch.autograd": ("profiler_legacy",),
    "torch.autograd.profiler": (
        "EnforceUnique", "KinetoStepTracker", "MemRecordsAcc", "load_nvprof", "parse_nvprof_trace",
    ),
    "torch.autograd.profiler_util": ("EventMetadata", "MemRecordsAcc", "StringTable"),
    "torch.profiler": ("ExecutionTraceObserver",),
    "torch.utils.benchmark": (
        "CallgrindStats", "CopyIfCallgrind", "FunctionCount", "FunctionCounts", "FuzzedParameter", "FuzzedSparseTensor",
        "FuzzedTensor", "Fuzzer", "ParameterAlias",
    ),
    "torch.utils._pytree": (
        "treespec_dumps", "treespec_loads", "treespec_pprint",
    ),
}  # fmt: skip


for _module, _names in MORE.items():
    NAMES[_module] = (*NAMES.get(_module, ()), *_names.split())


def refusal(module: str, name: str) -> NotImplementedError:
    """The error that says that a name of PyTorch's is not here."""
    return NotImplementedError(f"{module}.{name} is not in Stridescope yet")


class _NameNotYet(NotImplementedError, AttributeError):
    """The same for a name that programs look for with ``hasattr``, which has to say no."""


# Tracebacks name the error as everybody knows it.
_NameNotYet.__module__, _NameNotYet.__qualname__, _NameNotYet.__name__ = "builtins", *("NotImplementedError",) * 2
# Dtypes of PyTorch that are not here.
DTYPES = (
    "bits16", "bits1x8", "bits2x4", "bits4x2", "bits8", "chalf", "complex32", "float4_e2m1fn_x2", "float8_e4m3fn",
    "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "int1", "int2", "int3", "int4", "int5",
    "int6", "int7", "qint32", "qint8", "quint2x4", "quint4x2", "quint8", "uint1", "uint2", "uint3", "uint4", "uint5",
    "uint6", "uint7",
)  # fmt: skip


def dtype_refusal(name: str) -> AttributeError:
    """The error that says that a dtype of PyTorch's is not here."""
    return _NameNotYet(f"torch.{name} is not in Stridescope yet")


def refusing(module: str, name: str) -> Callable[..., NoReturn]:
    """A function that raises NotImplementedError when it is called."""

    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise refusal(module, name)

    refuse.__name__ = refuse.__qualname__ = name
    return refuse


def attribute_of(module: str) -> Callable[[str], NoReturn]:
    """The ``__getattr__`` of a module that is not here: any name raises NotImplementedError."""

    def __getattr__(name: str) -> NoReturn:
        if name.startswith("__"):  # Python itself asks for these
            raise AttributeError(f"module '{module}' has no attribute '{name}'")
        raise refusal(module, name)

    return __getattr__


def missing_from(module: str, package: str = "") -> Callable[[str], Any]:
    """The ``__getattr__`` of a module that is here: PyTorch's other names raise NotImplementedError, the rest
    AttributeError. With ``package`` (the module's own ``__name__``) its submodules are loaded when asked for."""

    def __getattr__(name: str) -> Any:
        if name in NAMES.get(module, ()):
            raise refusal(module, name)
        if package and not name.startswith("_") and importlib.util.find_spec(f"{package}.{name}") is not None:
            return importlib.import_module(f"{package}.{name}")
        raise AttributeError(f"module '{module}' has no attribute '{name}'")

    return __getattr__
