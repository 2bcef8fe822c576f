from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from . import mayo

__all__ = ["compact", "sign", "verify"]

_Dataset = TypeVar("_Dataset")

def verify(dataset: _Dataset, key: mayo.PublicKey | None = None, *, threads: int = 1, **options: Any) -> _Dataset: ...
def sign(
    dataset: _Dataset,
    load: Callable[[], mayo.SecretKey],
    *,
    threads: int = 1,
    message: str = "message",
    signature: str = "signature",
) -> _Dataset: ...
def compact(
    jobs: Iterable[tuple[int, Sequence[tuple[int, bytes]], bytes | None]], folder: str, **options: Any
) -> Iterator[tuple[int, list[bytes | None] | Exception]]: ...
