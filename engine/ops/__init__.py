"""All ops: the explicit list of the modules that declare them, and what is derived from it.

To add an op, write its ``define(…)`` into the module of its family; a new module is named in ``MODULES``. The
function, the method, the op page and the tests follow from the declaration.
"""

from __future__ import annotations

from stridescope.engine.dispatch.op import DECLARED, Op
from stridescope.engine.dispatch.parser import Function
from stridescope.engine.kernels import floating_errors
from stridescope.engine.ops import (
    arithmetic,
    comparison,
    copying,
    creation,
    matmul,
    reduce,
    unary,
    views,
)
from stridescope.engine.ops.attach import attach_methods, functions_of

floating_errors.install()
MODULES = (arithmetic, unary, comparison, reduce, views, copying, creation, matmul)
OPS: tuple[Op, ...] = tuple(DECLARED)
# Public functions by namespace: FUNCTIONS["torch"]["add"], FUNCTIONS["torch.nn.functional"]["relu"].
FUNCTIONS: dict[str, dict[str, Function]] = functions_of(OPS)
attach_methods(OPS)
