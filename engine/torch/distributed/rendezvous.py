"""How processes find each other: a URL gives a store, this process's rank and the number of all."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import ParseResult, urlparse
from urllib.request import url2pathname

from stridescope.engine.torch.distributed.constants import default_pg_timeout
from stridescope.engine.torch.distributed.file_store import FileStore
from stridescope.engine.torch.distributed.store import Store
from stridescope.engine.torch.distributed.tcp_store import TCPStore

Met = tuple[Store, int, int]
Handler = Callable[..., Iterator[Met]]
_handlers: dict[str, Handler] = {}


def register_rendezvous_handler(scheme: str, handler: Handler) -> None:
    """Let URLs of this scheme be handled by a generator function that yields (store, rank, world size)."""
    if scheme in _handlers:
        raise RuntimeError(f"Rendezvous handler for {scheme}:// already registered")
    _handlers[scheme] = handler


def rendezvous(url: str, rank: int = -1, world_size: int = -1, **kwargs: Any) -> Iterator[Met]:
    """What the URL's handler yields: the store, the rank and the number of ranks."""
    if not isinstance(url, (str, bytes)):
        raise RuntimeError(f"`url` must be a string. {type(url)}: {url}")
    if not isinstance(rank, int):
        raise RuntimeError(f"`rank` must be an integer. {rank}")
    if not isinstance(world_size, int):
        raise RuntimeError(f"`world_size` must be an integer. {world_size}")
    place = urlparse(url if isinstance(url, str) else url.decode())
    given = {"rank": rank, "world_size": world_size}
    if rank != -1 or world_size != -1:
        place = _with_query(place, {name: str(value) for name, value in given.items() if value != -1})
    if place.scheme not in _handlers:
        raise RuntimeError(f"No rendezvous handler for {place.scheme}://")
    return _handlers[place.scheme](place.geturl(), **kwargs)


def _query(place: ParseResult) -> dict[str, str]:
    return {name: value for name, _, value in (pair.partition("=") for pair in place.query.split("&")) if name}


def _with_query(place: ParseResult, given: dict[str, str]) -> ParseResult:
    own = _query(place)
    if "rank" in own or "world_size" in own:
        raise AssertionError(f"The url: {place.geturl()} has node-specific arguments(rank, world_size) already.")
    return place._replace(query="&".join(f"{name}={value}" for name, value in {**own, **given}.items()))


def _wrong(scheme: str, why: str) -> ValueError:
    return ValueError(f"Error initializing torch.distributed using {scheme}:// rendezvous: {why}")


def _numbers(scheme: str, query: dict[str, str]) -> tuple[int, int]:
    for name, shown in (("rank", "rank"), ("world_size", "world size")):
        if name not in query:
            raise _wrong(scheme, f"{shown} parameter missing")
    return int(query["rank"]), int(query["world_size"])


def _by_file(url: str, **kwargs: Any) -> Iterator[Met]:
    place = urlparse(url)
    path = url2pathname(place.netloc + place.path) if os.name == "nt" else place.path
    if not path:
        raise _wrong("file", "path missing")
    rank, size = _numbers("file", _query(place))
    yield FileStore(path, size), rank, size
    raise RuntimeError("Unable to perform rerendezvous using file:// method")


def _by_tcp(url: str, timeout: timedelta = default_pg_timeout, **kwargs: Any) -> Iterator[Met]:
    place = urlparse(url)
    if place.port is None:
        raise _wrong("tcp", "port number missing")
    rank, size = _numbers("tcp", _query(place))
    yield _served(place.hostname or "localhost", place.port, rank, size, timeout), rank, size
    raise RuntimeError("Unable to perform re-rendezvous using tcp:// method")


def _by_environment(url: str, timeout: timedelta = default_pg_timeout, **kwargs: Any) -> Iterator[Met]:
    query = _query(urlparse(url))
    rank = int(query.get("rank") or _variable("RANK"))
    size = int(query.get("world_size") or _variable("WORLD_SIZE"))
    address, port = _variable("MASTER_ADDR"), int(_variable("MASTER_PORT"))
    yield _served(address, port, rank, size, timeout), rank, size
    raise RuntimeError("Unable to perform re-rendezvous using env:// method")


def _variable(name: str) -> str:
    if not (value := os.environ.get(name)):
        raise _wrong("env", f"environment variable {name} expected, but not set")
    return value


def _served(host: str, port: int, rank: int, size: int, timeout: timedelta) -> TCPStore:
    """The store of the job: rank 0 serves it, unless a launcher does."""
    if not 0 <= port < 1 << 16:
        raise ValueError(f"port must have value from 0 to 65535 but was {port}.")
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        return TCPStore(host, port, size, is_master=False, timeout=timeout)
    return TCPStore(host, port, size, is_master=rank == 0, timeout=timeout, multi_tenant=True)


register_rendezvous_handler("tcp", _by_tcp)
register_rendezvous_handler("env", _by_environment)
register_rendezvous_handler("file", _by_file)
__all__ = ["register_rendezvous_handler", "rendezvous"]
