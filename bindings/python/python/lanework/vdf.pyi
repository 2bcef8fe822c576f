from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, Self, final

from typing_extensions import Buffer

__all__ = [
    "Discriminant",
    "Progress",
    "Proof",
    "compact",
    "evaluate",
    "prove",
    "verify",
    "verify_batch",
    "verify_compact",
]

@final
class Discriminant:
    def __new__(cls, d: int, *, trust: bool = False) -> Self: ...
    @classmethod
    def from_challenge(cls, challenge: Buffer, bits: int = 1024) -> Discriminant: ...
    @property
    def bits(self) -> int: ...
    @property
    def form_length(self) -> int: ...
    def generator(self) -> bytes: ...
    def __int__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Proof:
    @property
    def discriminant(self) -> Discriminant: ...
    @property
    def x(self) -> bytes: ...
    @property
    def iterations(self) -> int: ...
    @property
    def y(self) -> bytes: ...
    @property
    def proof(self) -> bytes: ...
    @property
    def depth(self) -> int: ...
    @property
    def b(self) -> bytes: ...
    @property
    def compact(self) -> bytes: ...
    @property
    def resumed(self) -> int: ...
    def __bytes__(self) -> bytes: ...

@final
class Progress:
    @property
    def phase(self) -> str: ...
    @property
    def done(self) -> int: ...
    @property
    def total(self) -> int: ...
    @property
    def resumed(self) -> int: ...

def prove(
    discriminant: Discriminant,
    iterations: int,
    *,
    x: Buffer | None = None,
    segments: int = 0,
    threads: int = 0,
    memory: int | None = None,
    checkpoint: str | PathLike[str] | None = None,
    interval: float = 1.0,
    progress: Callable[[Progress], Any] | None = None,
) -> Proof: ...
def evaluate(
    discriminant: Discriminant,
    iterations: int,
    *,
    x: Buffer | None = None,
    checkpoint: str | PathLike[str] | None = None,
    interval: float = 1.0,
    progress: Callable[[Progress], Any] | None = None,
) -> bytes: ...
def compact(
    discriminant: Discriminant,
    claims: Sequence[tuple[int, Buffer]],
    *,
    x: Buffer | None = None,
    threads: int = 0,
    memory: int | None = None,
    checkpoint: str | PathLike[str] | None = None,
    interval: float = 60.0,
    progress: Callable[[Progress], Any] | None = None,
    outcome: Callable[[int, Proof | None], Any] | None = None,
) -> list[Proof | None]: ...
def verify(
    discriminant: Discriminant,
    x: Buffer,
    proof: Buffer,
    iterations: int,
    depth: int = 0,
    *,
    lenient: bool = False,
    max_depth: int = 63,
    max_iterations: int = 281474976710656,
) -> None: ...
def verify_batch(
    items: Sequence[tuple[Discriminant, Buffer, Buffer, int, int]],
    *,
    threads: int = 1,
    lenient: bool = False,
    max_depth: int = 63,
    max_iterations: int = 281474976710656,
) -> list[bool]: ...
def verify_compact(
    discriminant: Discriminant,
    x: Buffer,
    proof: Buffer,
    b: Buffer,
    iterations: int,
    depth: int = 0,
    *,
    lenient: bool = False,
    max_depth: int = 63,
    max_iterations: int = 281474976710656,
) -> bytes: ...
