"""MAYO signatures in Arrow tables: needs ``pyarrow``.

Arrow's buffers are read where they are, without a copy.
"""

from typing import Any

import pyarrow as pa
import pyarrow.types as types

from . import mayo
from ._lanework import Malformed

__all__ = ["verify_table"]


def verify_table(
    table: Any,
    key: Any = None,
    *,
    message: str = "message",
    signature: str = "signature",
    public_key: str = "public_key",
    name: str = "MAYO-2",
    round: int = 3,
    valid: str = "valid",
    threads: int = 0,
) -> Any:
    """The table or record batch with a further column of booleans: which signatures are valid.

    ``message`` and ``signature`` name columns of binary values. With ``key``, a public or verifying key, all rows are
    verified under it. Without, the column ``public_key`` has each row's key, of the set ``name`` and the round. A row with
    a null, or with a key or signature of the wrong length, is not valid. A batch never fails because of a row.
    """
    if valid in table.column_names:
        raise Malformed(f"the table already has a column {valid!r}")
    messages, signatures = _one(table.column(message)), _one(table.column(signature))
    if key is not None:
        outcome = mayo.verify_batch(key, messages, signatures, threads=threads)
    else:
        outcome = _each(messages, signatures, _one(table.column(public_key)), name, round, threads)
    return table.append_column(valid, pa.array(outcome, pa.bool_()))


def _each(messages: Any, signatures: Any, column: Any, name: str, round: int, threads: int) -> list[bool]:
    """Verifies each row under its own key. Equal keys are read once."""
    encoded = column.dictionary_encode()
    keys = []
    for value in encoded.dictionary:
        try:
            keys.append(mayo.PublicKey.from_bytes(value.as_buffer(), name, round=round))
        except Malformed:
            keys.append(None)
    if keys and all(key is None for key in keys):
        # Nothing is valid. This also names a set that does not exist.
        mayo.SecretKey.generate(name, round=round)
    chosen = [None if i is None else keys[i] for i in encoded.indices.to_pylist()]
    rows = [i for i, key in enumerate(chosen) if key is not None]
    outcome = [False] * len(chosen)
    if len(rows) < len(chosen):
        take = pa.array(rows, pa.int64())
        messages, signatures = messages.take(take), signatures.take(take)
    found = mayo.verify_batch([chosen[i] for i in rows], messages, signatures, threads=threads)
    for i, is_valid in zip(rows, found):
        outcome[i] = is_valid
    return outcome


def _one(column: Any) -> Any:
    """A column as one array; joining several chunks copies them."""
    if isinstance(column, pa.ChunkedArray):
        return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    return column


def _parts(array: Any) -> tuple[Any, Any, Any, int, int, int]:
    """Of an array of binary values: data, validity and offsets as buffers, a width in bytes, the first row, the rows.

    The width is that of a value, or of an offset if there are offsets.
    """
    if not isinstance(array, (pa.Array, pa.ChunkedArray)):
        array = pa.array(array)
    array = _one(array)
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    kind = array.type
    if types.is_fixed_size_binary(kind):
        validity, data = array.buffers()
        offsets, width = None, kind.byte_width
    elif types.is_binary(kind) or types.is_large_binary(kind):
        validity, offsets, data = array.buffers()
        width = 8 if types.is_large_binary(kind) else 4
        if offsets is None:
            offsets = b""
    else:
        raise TypeError(f"an Arrow array of binary values is needed, not of {kind}")
    return b"" if data is None else data, validity, offsets, width, array.offset, len(array)
