"""All ops: the explicit list of the modules that declare them, and what is derived from it.

To add an op, write its ``define(…)`` into the module of its family; a new module is named in ``MODULES``. The
function, the method, the op page and the tests follow from the declaration.
"""

from __future__ import annotations

from stridescope.engine.dispatch.op import DECLARED, Op
from stridescope.engine.dispatch.parser import Function
from stridescope.engine.kernels import floating_errors
from stridescope.engine.ops import (
    activations,
    adaptive_pooling,
    aliases,
    areas,
    arithmetic,
    attention,
    backward_ops,
    bitwise,
    choice,
    comparison,
    complexes,
    conv,
    copying,
    creation,
    ctc,
    cumulative,
    distance,
    division,
    embedding,
    extremes,
    filling,
    flat_places,
    fourier,
    fractional_pooling,
    gamma_sampling,
    grid,
    indexed,
    indexing,
    interpolate,
    joining,
    linalg_eigen,
    linalg_least,
    linalg_lu,
    linalg_norms,
    linalg_qr,
    linalg_solve,
    linalg_triangular,
    linear,
    losses,
    losses_class,
    losses_margin,
    matmul,
    matmul_added,
    matmul_dtype,
    minmax,
    norm_groups,
    norm_layers,
    norms,
    packing,
    padding,
    pairs,
    polynomials,
    pooling,
    powers,
    products,
    random_ops,
    ranges,
    rearranging,
    reduce,
    resizing,
    rnn,
    rounding,
    rrelu,
    sampling,
    scatter,
    searching,
    segments,
    selecting,
    shuffles,
    softmax,
    sorting,
    special,
    spectral,
    spread,
    statistics,
    triangles,
    unary,
    views,
    views_copy,
    views_dtype,
    views_select,
    views_shape,
    views_split,
)
from stridescope.engine.ops.attach import attach_methods, functions_of

floating_errors.install()
MODULES = (
    arithmetic, division, powers, rounding, unary, comparison, reduce, views, copying, creation, matmul,
    matmul_added, matmul_dtype, bitwise, choice, complexes, cumulative, extremes, minmax, pairs, sorting, spread,
    views_select, views_split, views_shape, views_dtype, views_copy, joining, rearranging, indexing, areas, norms,
    statistics, aliases, resizing, filling, selecting, scatter, indexed, flat_places, triangles, softmax, searching,
    products, ranges, random_ops, sampling, linalg_lu,
    linalg_solve, linalg_triangular, linalg_eigen, linalg_least, linalg_norms, linalg_qr, special, polynomials,
    fourier, activations, linear, losses, losses_class, conv, pooling, segments, spectral,
    adaptive_pooling, norm_layers, norm_groups, padding, interpolate, shuffles, embedding, attention, grid, distance,
    losses_margin, rrelu, rnn, packing, ctc, fractional_pooling,
    gamma_sampling, backward_ops,
)  # fmt: skip
aliases.declare()
OPS: tuple[Op, ...] = tuple(DECLARED)
# Public functions by namespace: FUNCTIONS["torch"]["add"], FUNCTIONS["torch.nn.functional"]["relu"].
FUNCTIONS: dict[str, dict[str, Function]] = functions_of(OPS)
attach_methods(OPS)
