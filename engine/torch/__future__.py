"""``torch.__future__``: choices that will be the default one day."""

from __future__ import annotations

from stridescope.engine.torch._not_yet import refusal

_CHOSEN = {"overwrite": False}


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Whether ``Module.to`` gives a module new Parameters instead of new data for the old ones."""
    _CHOSEN["overwrite"] = value


def get_overwrite_module_params_on_conversion() -> bool:
    """Whether ``Module.to`` gives a module new Parameters; False unless it was chosen."""
    return _CHOSEN["overwrite"]


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Whether ``Module.to`` exchanges the contents of Parameters; NotImplementedError for True."""
    if value:
        raise refusal("torch.__future__", "set_swap_module_params_on_conversion(True)")


def get_swap_module_params_on_conversion() -> bool:
    """Whether ``Module.to`` exchanges the contents of Parameters: it does not."""
    return False
