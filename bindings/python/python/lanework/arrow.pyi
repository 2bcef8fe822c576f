from typing import TypeVar

from . import mayo

__all__ = ["verify_table"]

_Table = TypeVar("_Table")

def verify_table(
    table: _Table,
    key: mayo.VerifyingKey | mayo.PublicKey | None = None,
    *,
    message: str = "message",
    signature: str = "signature",
    public_key: str = "public_key",
    name: str = "MAYO-2",
    round: int = 3,
    valid: str = "valid",
    threads: int = 0,
) -> _Table: ...
