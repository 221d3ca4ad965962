"""The ops that forward-mode differentiation refuses: PyTorch has no formula for the tangents of their results."""

from __future__ import annotations

from stridescope.engine.dispatch.op import Op

REFUSED = frozenset(
    (
        "_cdist_forward", "_ctc_loss", "_embedding_bag", "_euclidean_dist", "_pdist_forward",
        "_scaled_dot_product_flash_attention_for_cpu", "_segment_reduce", "_standard_gamma", "_unique2",
        "unique_consecutive", "cholesky", "geqrf", "grid_sampler_2d", "grid_sampler_3d", "igamma", "igammac",
        "index_reduce", "multi_margin_loss", "multilabel_margin_loss_forward", "ormqr", "special_zeta", "unique_dim",
    )
)  # fmt: skip
# What PyTorch calls two of them.
PYTORCHS = {"_segment_reduce": "segment_reduce", "unique_consecutive": "unique_consecutive"}


def refuse(op: Op) -> None:
    """Raise NotImplementedError when ``op`` has no tangents, in PyTorch's words."""
    name = op.schema.name
    written = bool(op.schema.writes)
    if (name.removesuffix("_") if written else name) in REFUSED:
        raise NotImplementedError(
            f"Trying to use forward AD with {PYTORCHS.get(name, name)} that does not support it because it has not "
            "been implemented yet.\n"
            "Please file an issue to PyTorch at "
            "https://github.com/pytorch/pytorch/issues/new?template=feature-request.yml so that we can prioritize its "
            f"implementation{'.' if written else ' or submit a PR adding the implementation to derivatives.yaml'}"
        )
