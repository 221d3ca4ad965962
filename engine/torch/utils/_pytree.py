"""``torch.utils._pytree``: nests of tuples, lists, dicts and registered classes; their leaves, shapes and paths."""

from __future__ import annotations

import collections
import dataclasses
import types
import warnings
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from stridescope.engine.dispatch.return_types import NamedResults
from stridescope.engine.tensor import Size
from stridescope.engine.torch._not_yet import missing_from

PyTree: TypeAlias = Any
Context: TypeAlias = Any
IsLeaf: TypeAlias = Callable[[Any], bool] | None


@dataclasses.dataclass(frozen=True)
class SequenceKey:
    """A place in a tuple or list."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, parent: Any) -> Any:
        """The item there."""
        return parent[self.idx]


@dataclasses.dataclass(frozen=True)
class MappingKey:
    """A key of a dict."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, parent: Any) -> Any:
        """The value there."""
        return parent[self.key]


@dataclasses.dataclass(frozen=True)
class GetAttrKey:
    """A field of a named tuple."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, parent: Any) -> Any:
        """The field's value."""
        return getattr(parent, self.name)


class NodeDef(NamedTuple):
    """How a kind of node comes apart and together: ``flatten`` gives children and context, ``keys`` their paths."""

    flatten: Callable[[Any], tuple[Sequence[Any], Context]]
    unflatten: Callable[[Iterable[Any], Context], Any]
    keys: Callable[[Any], Sequence[Any]] | None = None


def is_namedtuple_class(cls: Any) -> bool:
    """Whether this is a class of named tuples."""
    return isinstance(cls, type) and issubclass(cls, tuple) and isinstance(getattr(cls, "_fields", None), tuple)


def is_namedtuple_instance(obj: object) -> bool:
    """Whether this is a named tuple."""
    return is_namedtuple_class(type(obj))


def is_namedtuple(obj: object) -> bool:
    """Whether this is a named tuple, or a class of them."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


namedtuple = collections.namedtuple  # the name that a TreeSpec prints
_MAPPING = (lambda d: [MappingKey(key) for key in d],)
_PLACES = (lambda values: [SequenceKey(place) for place in range(len(values))],)
SUPPORTED_NODES: dict[Any, NodeDef] = {
    tuple: NodeDef(lambda t: (list(t), None), lambda parts, _: tuple(parts), *_PLACES),
    list: NodeDef(lambda values: (values, None), lambda parts, _: list(parts), *_PLACES),
    dict: NodeDef(
        lambda d: (list(d.values()), list(d)), lambda parts, keys: dict(zip(keys, parts, strict=True)), *_MAPPING
    ),
    OrderedDict: NodeDef(
        lambda d: (list(d.values()), list(d)), lambda parts, keys: OrderedDict(zip(keys, parts, strict=True)), *_MAPPING
    ),
    defaultdict: NodeDef(
        lambda d: (list(d.values()), [d.default_factory, list(d)]),
        lambda parts, context: defaultdict(context[0], zip(context[1], parts, strict=True)),
        *_MAPPING,
    ),
    deque: NodeDef(lambda d: (list(d), d.maxlen), lambda parts, size: deque(parts, maxlen=size), *_PLACES),
    namedtuple: NodeDef(
        lambda t: (list(t), type(t)),
        lambda parts, kind: kind(*parts),
        lambda t: [GetAttrKey(name) for name in t._fields],
    ),
}


SUPPORTED_NODES[Size] = SUPPORTED_NODES[tuple]


def is_structseq_class(cls: Any) -> bool:
    """Whether this is a class of ``torch.return_types``."""
    return isinstance(cls, type) and issubclass(cls, NamedResults)


def is_structseq_instance(obj: object) -> bool:
    """Whether this is what an op with several named results returns."""
    return is_structseq_class(type(obj))


def is_structseq(obj: object) -> bool:
    """Whether this is one of ``torch.return_types``, or an instance of one."""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


def _kind(tree: Any) -> Any:
    kind: Any = namedtuple if is_namedtuple_instance(tree) else type(tree)
    if kind not in SUPPORTED_NODES and is_structseq_class(kind):
        SUPPORTED_NODES[kind] = NodeDef(lambda t: (list(t), None), lambda parts, _: kind(parts), *_PLACES)
    return kind


class TreeSpec:
    """The shape of a nest: the ``type`` of the node, its ``context`` (keys, a length) and its children's shapes."""

    def __init__(self, type: Any, context: Context, children_specs: Sequence[TreeSpec]) -> None:
        self.type, self.context, self._children = type, context, list(children_specs)
        inside = self._children
        self.num_children = len(inside)
        self.num_nodes: int = 1 + sum(child.num_nodes for child in inside)
        self.num_leaves: int = 1 if type is None else sum(child.num_leaves for child in inside)

    @property
    def children_specs(self) -> list[TreeSpec]:
        """The older name of :meth:`children`."""
        warnings.warn(
            "`treespec.children_specs` is deprecated. Use `treespec.child(index)` to access a single child, or "
            "`treespec.children()` to get all children.",
            FutureWarning,
            stacklevel=2,
        )
        return self._children

    def is_leaf(self) -> bool:
        """Whether this stands for a leaf."""
        return self.type is None

    def children(self) -> list[TreeSpec]:
        """The children's shapes."""
        return self._children.copy()

    def child(self, index: int) -> TreeSpec:
        """The shape of one child."""
        return self._children[index]

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """The nest with these leaves; ValueError for another number of them."""
        leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} but the spec refers to a pytree that "
                f"holds {self.num_leaves} items ({self})."
            )
        return self._built(iter(leaves))

    def _built(self, leaves: Iterator[Any]) -> Any:
        if self.type is None:
            return next(leaves)
        return SUPPORTED_NODES[self.type].unflatten([child._built(leaves) for child in self._children], self.context)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """The parts of ``tree`` that stand where this shape has its leaves; ValueError where the shapes differ."""
        if self.type is None:
            return [tree]
        if _kind(tree) is not self.type and not (self._keyed and _kind(tree) in (dict, OrderedDict, defaultdict)):
            raise ValueError(f"Node type mismatch; expected {self.type!r}, but got {_kind(tree)!r}.")
        parts, _ = SUPPORTED_NODES[_kind(tree)].flatten(tree)
        if len(parts) != self.num_children:
            raise ValueError(f"Node arity mismatch; expected {self.num_children}, but got {len(parts)}.")
        if self._keyed:
            parts = self._in_order(tree)
        pairs = zip(self._children, parts, strict=True)
        return [leaf for child, part in pairs for leaf in child.flatten_up_to(part)]

    @property
    def _keyed(self) -> bool:
        return self.type in (dict, OrderedDict, defaultdict)

    def _in_order(self, tree: Mapping[Any, Any]) -> list[Any]:
        keys = self.context[1] if self.type is defaultdict else self.context
        if set(keys) != set(tree):
            missing, extra = set(keys) - set(tree), set(tree) - set(keys)
            raise ValueError(f"Node keys mismatch; missing key(s): {missing}; extra key(s): {extra}.")
        return [tree[key] for key in keys]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TreeSpec):
            return NotImplemented
        return (self.type, self.context, self._children) == (other.type, other.context, other._children)

    def __hash__(self) -> int:
        return hash((self.type, self.num_nodes, self.num_leaves))

    def __repr__(self) -> str:
        return self._shown(0)

    def _shown(self, indent: int) -> str:
        if self.type is None:
            return "*"
        between = ",\n" + " " * (indent + 2)
        inside = between.join(child._shown(indent + 2) for child in self._children)
        return f"TreeSpec({self.type.__name__}, {self.context}, [{inside}])"


PyTreeSpec = TreeSpec
_LEAF = TreeSpec(None, None, ())


def LeafSpec() -> TreeSpec:
    """The shape of a leaf."""
    return _LEAF


def register_pytree_node(
    cls: type[Any],
    flatten_fn: Callable[[Any], tuple[Sequence[Any], Context]],
    unflatten_fn: Callable[[Iterable[Any], Context], Any],
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: Callable[[Context], Any] | None = None,
    from_dumpable_context: Callable[[Any], Context] | None = None,
    flatten_with_keys_fn: Callable[[Any], tuple[Sequence[tuple[Any, Any]], Context]] | None = None,
) -> None:
    """Let instances of ``cls`` be nodes; ValueError for a class that is one already."""
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    keys = None if flatten_with_keys_fn is None else lambda tree: [key for key, _ in flatten_with_keys_fn(tree)[0]]
    SUPPORTED_NODES[cls] = NodeDef(flatten_fn, unflatten_fn, keys)


def tree_is_leaf(tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether this is no node, or ``is_leaf`` says that it counts as a leaf."""
    return is_leaf is not None and is_leaf(tree) or _kind(tree) not in SUPPORTED_NODES


def tree_iter(tree: PyTree, is_leaf: IsLeaf = None) -> Iterator[Any]:
    """The leaves, one after the other."""
    if tree_is_leaf(tree, is_leaf):
        yield tree
        return
    for child in SUPPORTED_NODES[_kind(tree)].flatten(tree)[0]:
        yield from tree_iter(child, is_leaf)


def tree_leaves(tree: PyTree, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves."""
    return list(tree_iter(tree, is_leaf))


def tree_structure(tree: PyTree, is_leaf: IsLeaf = None) -> TreeSpec:
    """The shape of the nest."""
    if tree_is_leaf(tree, is_leaf):
        return _LEAF
    children, context = SUPPORTED_NODES[_kind(tree)].flatten(tree)
    return TreeSpec(_kind(tree), context, [tree_structure(child, is_leaf) for child in children])


def tree_flatten(tree: PyTree, is_leaf: IsLeaf = None) -> tuple[list[Any], TreeSpec]:
    """The leaves, and the shape that puts them together again."""
    return tree_leaves(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> PyTree:
    """The nest of this shape with these leaves."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(f"Expected `treespec` to be a TreeSpec, but got item of type {type(treespec)}.")
    return treespec.unflatten(leaves)


def tree_map(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """The same nest with ``func`` of each leaf, and of what stands at the same place in ``rests``."""
    leaves, spec = tree_flatten(tree, is_leaf)
    columns = [leaves, *(spec.flatten_up_to(rest) for rest in rests)]
    return spec.unflatten(map(func, *columns))


def tree_map_(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """Call ``func`` for each leaf, and return the nest itself."""
    leaves, spec = tree_flatten(tree, is_leaf)
    columns = [leaves, *(spec.flatten_up_to(rest) for rest in rests)]
    deque(map(func, *columns), maxlen=0)
    return tree


def _predicate(what: Any) -> Callable[[Any], bool]:
    if isinstance(what, (type, tuple, types.UnionType)):
        return lambda leaf: isinstance(leaf, what)
    if callable(what):
        return what  # type: ignore[no-any-return]
    raise TypeError("Argument must be a type, a tuple of types, or a callable.")


def map_only(type_or_types_or_pred: Any, /) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """A decorator: the function is called for these leaves only, others stay as they are."""
    chosen = _predicate(type_or_types_or_pred)
    return lambda func: lambda leaf: func(leaf) if chosen(leaf) else leaf


def tree_map_only(
    type_or_types_or_pred: Any, /, func: Callable[[Any], Any], tree: PyTree, is_leaf: IsLeaf = None
) -> PyTree:
    """:func:`tree_map` of the leaves of some types, or of those that a function chooses."""
    return tree_map(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_map_only_(
    type_or_types_or_pred: Any, /, func: Callable[[Any], Any], tree: PyTree, is_leaf: IsLeaf = None
) -> PyTree:
    """:func:`tree_map_` of the leaves of some types, or of those that a function chooses."""
    return tree_map_(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether ``pred`` holds for every leaf."""
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether ``pred`` holds for a leaf."""
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(type_or_types: Any, /, pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether ``pred`` holds for every leaf of some types."""
    chosen = _predicate(type_or_types)
    return all(pred(leaf) for leaf in tree_iter(tree, is_leaf) if chosen(leaf))


def tree_any_only(type_or_types: Any, /, pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether ``pred`` holds for a leaf of some types."""
    chosen = _predicate(type_or_types)
    return any(pred(leaf) for leaf in tree_iter(tree, is_leaf) if chosen(leaf))


def tree_leaves_with_path(tree: PyTree, is_leaf: IsLeaf = None) -> list[tuple[tuple[Any, ...], Any]]:
    """The leaves, each with the keys that lead to it; ValueError for a class that has not said its keys."""
    if tree_is_leaf(tree, is_leaf):
        return [((), tree)]
    node = SUPPORTED_NODES[_kind(tree)]
    if node.keys is None:
        raise ValueError(f"Did not find a flatten_with_keys_fn for type: {_kind(tree)}. Please pass a "
                         "flatten_with_keys_fn argument to register_pytree_node.")  # fmt: skip
    children = zip(node.keys(tree), node.flatten(tree)[0], strict=True)
    return [((key, *path), leaf) for key, child in children for path, leaf in tree_leaves_with_path(child, is_leaf)]


def tree_flatten_with_path(tree: PyTree, is_leaf: IsLeaf = None) -> tuple[list[tuple[tuple[Any, ...], Any]], TreeSpec]:
    """The leaves with their paths, and the shape."""
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_map_with_path(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """:func:`tree_map` with the path as the first argument."""
    found, spec = tree_flatten_with_path(tree, is_leaf)
    columns = [list(column) for column in zip(*found, strict=True)] or [[], []]
    return spec.unflatten(map(func, *columns, *(spec.flatten_up_to(rest) for rest in rests)))


def keystr(kp: Iterable[Any]) -> str:
    """A path in Python's notation."""
    return "".join(map(str, kp))


def key_get(obj: Any, kp: Iterable[Any]) -> Any:
    """What stands at the end of a path."""
    for key in kp:
        obj = key.get(obj)
    return obj


__getattr__ = missing_from("torch.utils._pytree")

__all__ = [
    "Context", "LeafSpec", "PyTree", "PyTreeSpec", "TreeSpec", "is_namedtuple", "is_namedtuple_class",
    "is_namedtuple_instance", "is_structseq", "is_structseq_class", "is_structseq_instance", "key_get",
    "keystr", "register_pytree_node", "tree_all", "tree_all_only", "tree_any",
    "tree_any_only", "tree_flatten", "tree_flatten_with_path", "tree_is_leaf", "tree_iter", "tree_leaves",
    "tree_leaves_with_path", "tree_map", "tree_map_", "tree_map_only", "tree_map_only_", "tree_map_with_path",
    "tree_structure", "tree_unflatten",
]  # fmt: skip
