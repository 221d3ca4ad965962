"""A batch of events as columns: the form in which a recording keeps them.

Events of one kind stand together, field by field, and everything that is a whole number (ids, sizes, lines, indices
into tables of texts) is laid end to end in one long vector. The vector is stored as differences, byte plane by byte
plane, which leaves almost nothing but zeros for zstd. Texts, argument lists and other values stand in one table per
column, each different value once. Decoding builds numbers, texts, bytes and tuples, nothing else.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import operator
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import zstandard

from stridescope.engine.events import EVENTS, Event, Wire
from stridescope.engine.recording.bundled import Kinds, Opener

Ints = npt.NDArray[np.int64]

# Field annotation -> how the column is kept; whatever is not listed is a table of any plain values.
FORMS = {"int": "int", "bool": "bool", "float": "float", "str": "text", "bytes": "bytes", "tuple[int, ...]": "ints"}

# Which fields name an entity: they are what `history` searches, so they are always kept as numbers.
ENTITIES: dict[str, tuple[str, ...]] = {
    "tensor": ("tensor", "inputs", "outputs", "base", "grad", "gradient", "gradients"),
    "storage": ("storage",),
    "node": ("node", "receiver", "roots"),
    "counter": ("counter",),
    "frame": ("frame",),
    "module": ("module", "child"),
}
_ENTITY_OF = {field: entity for entity, fields in ENTITIES.items() for field in fields}

_RAGGED, _TABLE = 0, 1
_LARGEST_BATCH = 1 << 28
_BIG_INTEGER, _BROKEN_TEXT = 1, 2


class DamagedBatch(ValueError):
    """The bytes are not a batch of events."""


@dataclasses.dataclass(frozen=True, slots=True)
class Field:
    """One field of a kind of event, as a recording describes it; ``entity`` is the kind of thing that it names."""

    name: str
    form: str
    entity: str | None = dataclasses.field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "entity", _ENTITY_OF.get(self.name) if self.form in ("int", "ints") else None)


@dataclasses.dataclass(frozen=True, slots=True)
class Kind:
    """One kind of event as a recording describes it: its name and fields, in the recording's own order."""

    name: str
    fields: tuple[Field, ...]


def kind_of(record: type[Any]) -> Kind:
    """Describe an event class of this engine, or another dataclass or struct of plain values."""
    fields = tuple(Field(name, FORMS.get(str(form), "any")) for name, form in record.__annotations__.items())
    return Kind(record.__name__, fields)


@functools.cache
def kinds_now() -> tuple[Kind, ...]:
    """Describe every event of this engine, in the order of the wire codes."""
    return tuple(kind_of(event) for event in EVENTS)


# ---- whole numbers -----------------------------------------------------------------------------------------------


def pack_ints(values: Ints) -> bytes:
    """Return the differences of ``values`` as byte planes, the planes that are all zero left out."""
    steps = values.copy()
    steps[1:] -= values[:-1]
    folded = ((steps << 1) ^ (steps >> 63)).astype("<i8", copy=False).view(np.uint64)
    width = (int(folded.max(initial=0)).bit_length() + 7) // 8
    return folded.view(np.uint8).reshape(-1, 8)[:, :width].T.tobytes()


def unpack_ints(packed: bytes, count: int) -> Ints:
    """Undo :func:`pack_ints`."""
    if count == 0 or not packed:
        return np.zeros(count, np.int64)
    planes = np.frombuffer(packed, np.uint8).reshape(-1, count)
    folded = np.zeros((count, 8), np.uint8)
    folded[:, : len(planes)] = planes.T
    zigzag = folded.view("<u8").ravel()
    steps = (zigzag >> np.uint64(1)).astype(np.int64) ^ -(zigzag & np.uint64(1)).astype(np.int64)
    return np.cumsum(steps, dtype=np.int64)


# ---- plain values ------------------------------------------------------------------------------------------------


def _portable(value: Any) -> Any:
    """Wrap what MessagePack cannot hold: integers over 64 bits and texts with lone surrogates."""
    if isinstance(value, tuple | list):
        return [_portable(item) for item in value]
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return msgspec.msgpack.Ext(_BIG_INTEGER, b"%x" % value)
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return msgspec.msgpack.Ext(_BROKEN_TEXT, value.encode("utf-8", "surrogatepass"))
    return value


def _unwrapped(code: int, data: memoryview) -> Any:
    if code == _BIG_INTEGER:
        return int(bytes(data), 16)
    if code == _BROKEN_TEXT:
        return bytes(data).decode("utf-8", "surrogatepass")
    raise DamagedBatch(f"unknown value {code}")


_encoder = msgspec.msgpack.Encoder(enc_hook=repr)  # what is no plain value is kept as its text
_decoder = msgspec.msgpack.Decoder(ext_hook=_unwrapped)


def pack_value(value: Any) -> bytes:
    """Encode numbers, texts, bytes, None and nested tuples of them."""
    try:
        return _encoder.encode(value)
    except (OverflowError, UnicodeEncodeError):
        return _encoder.encode(_portable(value))


def as_tuples(value: Any) -> Any:
    """Turn lists into tuples at every depth: what MessagePack calls an array was a tuple."""
    return tuple([as_tuples(item) if type(item) is list else item for item in value]) if type(value) is list else value


def unpack_values(packed: bytes | msgspec.Raw) -> Any:
    """Undo :func:`pack_value`, tuples at every depth having become lists."""
    return _decoder.decode(packed)


def unpack_value(packed: bytes | msgspec.Raw) -> Any:
    """Undo :func:`pack_value`."""
    return as_tuples(unpack_values(packed))


# ---- encoding ----------------------------------------------------------------------------------------------------

KeepBytes = Callable[[bytes], bytes | None]
ReadBytes = Callable[[bytes, int], Any]


class _Encoder:
    """Collects the columns of one batch."""

    def __init__(self, keep: KeepBytes, careful: bool) -> None:
        self.keep, self.careful = keep, careful
        self.numbers: list[array[int]] = []
        self.tables: list[Any] = []
        self.count = 0
        self.touched: dict[str, list[tuple[int, int]]] = {entity: [] for entity in ENTITIES}
        self._adders: dict[str, Callable[[Field, Any], None]] = {
            "int": self._int,
            "bool": self._int,
            "float": self._float,
            "text": self._text,
            "bytes": self._bytes,
            "ints": self._ints,
            "any": self._any,
        }

    def add_kind(self, kind: Kind, rows: Sequence[Wire]) -> None:
        """Add all events of one kind."""
        columns = zip(*rows, strict=True)
        next(columns)
        adders, touched = self._adders, self.touched
        for field, column in zip(kind.fields, columns, strict=True):
            adders[field.form](field, column)
            if field.entity is not None:
                touched[field.entity].append((self.count - len(self.numbers[-1]), self.count))

    def _add(self, numbers: Sequence[int]) -> None:
        self.numbers.append(array("q", numbers))
        self.count += len(numbers)

    def _table(self, values: Sequence[Any], different: Iterable[Any]) -> None:
        table = list(different)
        index = dict(zip(table, range(len(table)), strict=True))
        self._add(list(map(index.__getitem__, values)))
        self.tables.append(table)

    def _int(self, field: Field, column: Sequence[int]) -> None:
        if self.careful:  # a number over 64 bits: the nearest that fits
            column = [max(-(2**63), min(number, 2**63 - 1)) for number in column]
        self.numbers.append(array("q", column))
        self.count += len(column)

    def _float(self, field: Field, column: Sequence[float]) -> None:
        self._add(np.array(column, np.float64).view(np.int64).tolist())

    def _text(self, field: Field, column: Sequence[str]) -> None:
        self._table(column, dict.fromkeys(column))
        if self.careful:
            self.tables[-1] = [_portable(text) for text in self.tables[-1]]

    def _any(self, field: Field, column: Sequence[Any]) -> None:
        # 1, True and 1.0 are equal but not the same, so the encoded values are what is compared.
        packed = list(map(pack_value, column))
        self._table(packed, dict.fromkeys(packed))
        self.tables[-1] = list(map(msgspec.Raw, self.tables[-1]))

    def _bytes(self, field: Field, column: Sequence[bytes]) -> None:
        self.tables.append([self._kept(values) for values in column])

    def _kept(self, values: bytes | tuple[bytes, int]) -> bytes | tuple[bytes, int]:
        if isinstance(values, tuple):  # kept already
            return values
        key = self.keep(values)
        return values if key is None else (key, len(values))

    def _ints(self, field: Field, column: Sequence[tuple[int, ...]]) -> None:
        if field.entity is None and len(different := dict.fromkeys(column)) * 4 <= len(column):
            self.tables.append(_TABLE)
            self._table(column, different)
            return
        self.tables.append(_RAGGED)
        self._add(list(map(len, column)))
        self._int(field, list(itertools.chain.from_iterable(column)))


@dataclasses.dataclass(frozen=True, slots=True)
class Encoded:
    """A batch ready to be stored: the compressed kinds and columns, and which entities it touches (sorted ids)."""

    kinds: bytes
    body: bytes
    touched: dict[str, Ints]


def _different(ids: Ints) -> Ints:
    """Return the ids sorted, each once: several times as fast as np.unique at this size."""
    ids.sort()
    return np.concatenate((ids[:1], ids[1:][ids[1:] != ids[:-1]]))


def _encoded_columns(
    batch: Sequence[Wire], codes: Kinds, kinds: Sequence[Kind], keep: KeepBytes, careful: bool
) -> tuple[_Encoder, Ints]:
    order = np.argsort(codes, kind="stable").tolist()
    rows = operator.itemgetter(*order)(batch) if len(batch) > 1 else tuple(batch)
    encoder, start = _Encoder(keep, careful), 0
    for code, count in enumerate(np.bincount(codes).tolist()):
        if count:
            encoder.add_kind(kinds[code], rows[start : start + count])
            start += count
    return encoder, np.frombuffer(b"".join(encoder.numbers), np.int64)


def encode(batch: Sequence[Wire], keep: KeepBytes, kinds: Sequence[Kind] | None = None) -> Encoded:
    """Encode a batch of wire events, or of other tuples that begin with the number of their kind in ``kinds``.

    ``keep`` is asked for each bytes value: it returns None to leave it in the batch, or the key under which it was
    put elsewhere.
    """
    kinds = kinds or kinds_now()
    codes = np.frombuffer(bytes([wire[0] for wire in batch]), np.uint8)
    try:
        encoder, numbers = _encoded_columns(batch, codes, kinds, keep, careful=False)
        body = _encoder.encode((len(numbers), pack_ints(numbers), encoder.tables))
    except (OverflowError, UnicodeEncodeError):
        encoder, numbers = _encoded_columns(batch, codes, kinds, keep, careful=True)
        body = _encoder.encode((len(numbers), pack_ints(numbers), encoder.tables))
    compress = zstandard.ZstdCompressor(level=3).compress
    touched = {
        entity: _different(np.concatenate([numbers[a:b] for a, b in spans]))
        for entity, spans in encoder.touched.items()
        if spans
    }
    return Encoded(compress(codes.tobytes()), compress(body), touched)


# ---- decoding ----------------------------------------------------------------------------------------------------


def decompress(data: bytes, largest: int = _LARGEST_BATCH) -> bytes:
    """Undo zstd; raises :class:`DamagedBatch` for foreign bytes and for sizes that no writer of ours produces."""
    try:
        if zstandard.get_frame_parameters(data).content_size > largest:
            raise DamagedBatch("larger than any batch")
        return zstandard.ZstdDecompressor().decompress(data)
    except zstandard.ZstdError as error:
        raise DamagedBatch(str(error)) from error


def decode_kinds(packed: bytes) -> Kinds:
    """Return the codes of a batch's events, in order, as the recording numbers them."""
    return np.frombuffer(decompress(packed), np.uint8)


@dataclasses.dataclass(slots=True)
class _Column:
    """Where a column's numbers stand in the vector, and its table; ``lengths`` is set for ragged tuples."""

    field: Field
    start: int
    stop: int
    table: list[Any] | None = None
    lengths: Ints | None = None


class Batch:
    """A stored batch: single columns as arrays, or all events as wire tuples.

    ``schema`` says what the recording's codes mean; ``read`` turns the key and length of bytes kept elsewhere
    into whatever should stand in the event.
    """

    def __init__(self, first: int, kinds: Kinds, body: bytes, schema: Schema, read: ReadBytes) -> None:
        self.first, self.kinds, self._schema, self._read = first, kinds, schema, read
        try:
            count, packed, tables = _decoder.decode(decompress(body))
            self.numbers = unpack_ints(packed, count)
            self._columns = dict(self._walk(iter(tables)))
        except (ValueError, TypeError, IndexError, StopIteration, RuntimeError, msgspec.MsgspecError) as error:
            raise DamagedBatch(f"events from step {first} on cannot be read ({error})") from error

    def _walk(self, tables: Iterator[Any]) -> Iterator[tuple[int, list[_Column]]]:
        position = 0
        for code, count in enumerate(np.bincount(self.kinds).tolist()):
            columns: list[_Column] = []
            for field in self._schema.kinds[code].fields if count else ():
                columns.append(self._column(field, position, count, tables))
                position = columns[-1].stop
            if count:
                yield code, columns
        if position != len(self.numbers):
            raise DamagedBatch("the columns do not fill the batch")

    def _column(self, field: Field, start: int, count: int, tables: Iterator[Any]) -> _Column:
        if field.form in ("int", "bool", "float"):
            return _Column(field, start, start + count)
        table = next(tables)
        if field.form == "bytes":
            return _Column(field, start, start, table)
        if field.form != "ints":
            return _Column(field, start, start + count, table)
        if table == _TABLE:
            return _Column(field, start, start + count, next(tables))
        lengths = self.numbers[start : start + count]
        return _Column(field, start + count, start + count + int(lengths.sum()), None, lengths)

    def steps_of(self, event: type[Event]) -> Ints:
        """Return the steps of all events of this kind."""
        return self._steps(self._schema.recorded.get(event.__name__, -1))

    def _steps(self, code: int) -> Ints:
        return np.flatnonzero(self.kinds == code) + self.first

    def ints(self, event: type[Event], name: str) -> Ints:
        """Return an integer field of all events of this kind, in order."""
        for column in self._columns.get(self._schema.recorded.get(event.__name__, -1), ()):
            if column.field.name == name:
                return self.numbers[column.start : column.stop]
        return np.zeros(0, np.int64)

    def touching(self, entity: str, ids: Ints) -> Ints:
        """Return the steps whose events name one of these tensors, storages, nodes, counters or frames."""
        found = [
            self._steps(code)[self._rows_with(column, ids)]
            for code, columns in self._columns.items()
            for column in columns
            if column.field.entity == entity
        ]
        return np.unique(np.concatenate(found)) if found else np.zeros(0, np.int64)

    def _rows_with(self, column: _Column, ids: Ints) -> Ints:
        hits = np.flatnonzero(np.isin(self.numbers[column.start : column.stop], ids))
        if column.lengths is None:
            return hits
        return np.unique(np.searchsorted(np.cumsum(column.lengths), hits, side="right"))

    def wires(self) -> list[Wire]:
        """Return all events in order, as this engine's wire tuples."""
        rows = [wire for wires in self.by_code().values() for wire in wires]
        order = np.argsort(self.kinds, kind="stable")
        back = np.empty(len(order), np.int64)
        back[order] = np.arange(len(order))
        return list(operator.itemgetter(*back.tolist())(rows)) if len(rows) > 1 else rows

    def by_code(self) -> dict[int, list[Wire]]:
        """Return all wire tuples by the recording's codes, in order within each."""
        numbers = self.numbers.tolist()
        counts = np.bincount(self.kinds).tolist()
        return {
            code: list(self._schema.rows(code, [self._values(column, numbers) for column in columns], counts[code]))
            for code, columns in self._columns.items()
        }

    def _values(self, column: _Column, numbers: list[int]) -> Iterable[Any]:
        taken = numbers[column.start : column.stop]
        match column.field.form:
            case "int":
                return taken
            case "bool":
                return map(bool, taken)
            case "float":
                floats: list[float] = self.numbers[column.start : column.stop].view(np.float64).tolist()
                return floats
            case "bytes":
                return [self._read(*value) if isinstance(value, list) else value for value in column.table or ()]
        if column.lengths is not None:
            ends = np.cumsum(column.lengths).tolist()
            return [tuple(taken[a:b]) for a, b in zip([0, *ends[:-1]], ends, strict=True)]
        return map([as_tuples(value) for value in column.table or ()].__getitem__, taken)


_EMPTY: dict[str, Any] = {"int": 0, "bool": False, "float": 0.0, "text": "", "bytes": b"", "ints": (), "any": ()}


class Schema:
    """What the codes of one recording mean, and how its events become those of this engine (``now``)."""

    def __init__(self, kinds: Sequence[Kind], now: Sequence[Kind] | None = None, bundles: Sequence[Any] = ()) -> None:
        """``bundles`` are described as a recording does it. Raise KeyError for an event that this engine lacks."""
        now = now or kinds_now()
        known = {kind.name: code for code, kind in enumerate(now)}
        self.kinds = tuple(kinds)
        self.recorded = {kind.name: code for code, kind in enumerate(kinds)}
        self.codes = tuple(known[kind.name] for kind in kinds)
        self._sources = [self._fields(kind, now[code]) for kind, code in zip(kinds, self.codes, strict=True)]
        self.translation = np.array(self.codes or [0], np.uint8)
        self.current = self.codes == tuple(range(len(now))) and not any(self._sources)
        # Where in a wire of a kind its bytes stand; no kind has two fields of bytes.
        self.holders = {
            code: 1 + [field.form for field in kind.fields].index("bytes")
            for code, kind in enumerate(kinds)
            if any(field.form == "bytes" for field in kind.fields)
        }

        lists = ("ints", "any", "bytes")
        nested = [[at for at, field in enumerate(kind.fields, 1) if field.form in lists] for kind in kinds]
        self.bundles = Opener(bundles, nested, self.holders)

    @staticmethod
    def _fields(then: Kind, now: Kind) -> list[int | Any] | None:
        """For each field of today the position of the recorded one, or (default,); None where nothing changed."""
        if then.fields == now.fields:
            return None
        position = {field: index for index, field in enumerate(then.fields)}
        return [position.get(field, (_EMPTY[field.form],)) for field in now.fields]

    def rows(self, code: int, values: list[Iterable[Any]], count: int) -> Iterable[Wire]:
        """Return the wire tuples of all events with the recording's ``code``, given its columns."""
        source, now = self._sources[code], itertools.repeat(self.codes[code], count)
        if source is not None:
            values = [values[at] if isinstance(at, int) else itertools.repeat(at[0], count) for at in source]
        return zip(now, *values, strict=True)
