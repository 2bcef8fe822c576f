"""The functions of the package ``chiavdf`` (1.2.0) on this library.

A program opts in with one line:

>>> import lanework.compat.chiavdf as chiavdf
>>> d = chiavdf.create_discriminant(b"a challenge", 256)
>>> x = b"\\x08" + bytes(99)
>>> proof = chiavdf.prove(b"a challenge", x, 256, 1000, "")
>>> chiavdf.verify_n_wesolowski(d, x, proof, 1000, 256, 0)
True

``install`` makes ``import chiavdf`` mean this module, for programs that cannot be changed. ``docs/python.md`` of the
repository lists how it behaves, and where it differs.
"""

import operator
import os
import re
import sys
from typing import Any

from .. import vdf
from .._lanework import Malformed, Refused
from .._lanework import chiavdf as _chiavdf

__all__ = [
    "bqfc_deserialize",
    "create_discriminant",
    "create_discriminant_and_verify_n_wesolowski",
    "get_b_from_n_wesolowski",
    "prove",
    "verify_n_wesolowski",
    "verify_n_wesolowski_with_b",
    "verify_wesolowski",
]

_BITS = 1024
_FORM = 100
_HEAD = 8 + 33
_SEGMENT = _HEAD + _FORM
_INT = (-(1 << 31), (1 << 31) - 1)
_U64 = (0, (1 << 64) - 1)
_DIGITS = {10: "0123456789", 16: "0123456789abcdef", 8: "01234567", 2: "01"}


class _Gone(Exception):
    """The shutdown file is gone."""


def install() -> None:
    """Makes ``import chiavdf`` in this process mean this module. An installed chiavdf stays as it is."""
    present = sys.modules.get("chiavdf")
    if present not in (None, sys.modules[__name__]):
        raise ImportError("chiavdf is already imported; call install() before anything that imports it")
    sys.modules["chiavdf"] = sys.modules[__name__]


def create_discriminant(challenge_hash: bytes, discriminant_size_bits: int, /) -> str:
    """The discriminant of a challenge, in hexadecimal digits behind ``-0x``."""
    return hex(int(_from_challenge(_bytes(challenge_hash), _number(discriminant_size_bits, _INT))))


def verify_wesolowski(
    discriminant: str, x_s: bytes | str, y_s: bytes | str, proof_s: bytes | str, num_iterations: int, /
) -> bool:
    """Whether a proof in one segment shows the result ``y_s``."""
    d, x, y, proof = (_string(text) for text in (discriminant, x_s, y_s, proof_s))
    iterations = _number(num_iterations, _U64)
    return _end(_discriminant(_gmp(d)), _whole(x), _whole(y), _whole(proof), iterations)


def verify_n_wesolowski(
    discriminant: str,
    x_s: bytes | str,
    proof_blob: bytes | str,
    num_iterations: int,
    disc_size_bits: int,
    recursion: int,
    /,
) -> bool:
    """Whether a proof in ``recursion`` segments and a last one shows its result."""
    d, x, blob = _gmp(_string(discriminant)), _string(x_s), _string(proof_blob)
    iterations, bits, depth = (_number(n, _U64) for n in (num_iterations, disc_size_bits, recursion))
    return 0 < bits <= _BITS and _bits(d) <= _BITS and _verify(d, x, blob, iterations, depth)


def create_discriminant_and_verify_n_wesolowski(
    challenge_hash: bytes,
    discriminant_size_bits: int,
    x_s: bytes | str,
    proof_blob: bytes | str,
    num_iterations: int,
    recursion: int,
    /,
) -> bool:
    """``verify_n_wesolowski`` in the group of a challenge."""
    seed, bits, x, blob = _bytes(challenge_hash), _number(discriminant_size_bits, _INT), _string(x_s), _string(proof_blob)
    iterations, depth = _number(num_iterations, _U64), _number(recursion, _U64)
    return 0 < bits <= _BITS and _verify(int(_from_challenge(seed, bits)), x, blob, iterations, depth)


def verify_n_wesolowski_with_b(
    discriminant: str, B: str, x_s: bytes | str, proof_blob: bytes | str, num_iterations: int, recursion: int, /
) -> tuple[bool, bytes]:
    """The result that a proof without it shows, given the last segment's prime."""
    number, b, x, blob = _gmp(_string(discriminant)), _gmp(_string(B)), _string(x_s), _string(proof_blob)
    iterations, depth = _number(num_iterations, _U64), _number(recursion, _U64)
    if _bits(number) > _BITS:
        return False, b""
    d, x = _discriminant(number), _start(x)
    _form(d, x)
    if len(blob) != _FORM + depth * _SEGMENT:
        return False, b""
    walked = _walk(d, x, blob, iterations, _FORM)
    y = walked and _segment(d, walked[0], blob[:_FORM], b, walked[1])
    return (True, y) if y else (False, b"")


def get_b_from_n_wesolowski(
    discriminant: str, x_s: bytes | str, proof_blob: bytes | str, num_iterations: int, recursion: int, /
) -> str:
    """The last segment's prime, in hexadecimal digits behind ``0x``. The proof is not verified."""
    number, x, blob = _gmp(_string(discriminant)), _string(x_s), _string(proof_blob)
    iterations, depth = _number(num_iterations, _U64), _number(recursion, _U64)
    if _bits(number) > _BITS or len(blob) != 2 * _FORM + depth * _SEGMENT:
        raise RuntimeError("Invalid proof.")
    d, x = _discriminant(number), _start(x)
    walked = _walk(d, x, blob, iterations, 2 * _FORM, check=False)
    if not walked:
        raise RuntimeError("Invalid proof.")
    return f"0x{int.from_bytes(_forms(_chiavdf.challenge, d, walked[0], blob[:_FORM])):x}"


def prove(
    challenge_hash: bytes,
    x_s: bytes | str,
    discriminant_size_bits: int,
    num_iterations: int,
    shutdown_file_path: str,
    /,
) -> bytes:
    """A result and its proof in one segment; no bytes once the file of a path that is not empty is gone."""
    seed, x, bits = _bytes(challenge_hash), _string(x_s), _number(discriminant_size_bits, _INT)
    iterations, path = _number(num_iterations, _U64), _string(shutdown_file_path)
    d = _from_challenge(seed, bits)
    _form(d, _whole(x))
    if iterations == 0:
        # The form itself, and the identity.
        return _chiavdf.product(d, x, b"\1", x, b"") + _chiavdf.product(d, x, b"", x, b"")

    def look(_: object = None) -> None:
        try:
            if path:
                os.stat(path.split(b"\0")[0])
        except OSError:
            raise _Gone from None

    try:
        look()
        return vdf.prove(d, iterations, x=_chiavdf.product(d, x, b"\1", x, b""), progress=look).proof
    except _Gone:
        return b""


def bqfc_deserialize(discriminant: str, data: bytes | str, strict: bool = True) -> tuple[bytes, bytes]:
    """The coefficients a and b of a form: a byte for the sign, 1 if negative, then the number, highest byte first."""
    number, form = _gmp(_string(discriminant)), _string(data)
    if strict is not None and not hasattr(type(strict), "__bool__"):
        raise TypeError("strict must be a bool")
    d = _discriminant(number)
    numbers = [int(text, 16) for text in _form(d, _whole(form))]
    if strict and not form[0] & 0x0C:
        # The fields after a / g, t / g and g: under g, b0 leaves |b| at most a.
        size = form[1] + 1
        at = 2 + 3 * ((d.bits + 31) // 32) - 2 * form[1]
        g, b0 = (int.from_bytes(form[i : i + size], "little") for i in (at, at + size))
        if b0 >= max(g, 1):
            raise RuntimeError("the form is not reduced")
    a, b = ((n < 0).to_bytes() + abs(n).to_bytes((n.bit_length() + 7) // 8) for n in numbers)
    return a, b


def _verify(number: int, x: bytes, blob: bytes, iterations: int, depth: int) -> bool:
    if len(blob) != 2 * _FORM + depth * _SEGMENT:
        return False
    d, x = _discriminant(number), _start(x)
    if depth:
        _form(d, x)
        walked = _walk(d, x, blob, iterations, 2 * _FORM)
        if not walked:
            return False
        x, iterations = walked
    return _end(d, x, blob[:_FORM], blob[_FORM : 2 * _FORM], iterations)


def _walk(
    d: vdf.Discriminant, x: bytes, blob: bytes, iterations: int, base: int, check: bool = True
) -> tuple[bytes, int] | None:
    """The end of the segments before the last, which follow ``base`` bytes, and the squarings that are left."""
    for at in range(len(blob) - _SEGMENT, base - 1, -_SEGMENT):
        length, b = int.from_bytes(blob[at : at + 8]), int.from_bytes(blob[at + 8 : at + _HEAD])
        y = _segment(d, x, blob[at + _HEAD : at + _SEGMENT], b, length, check)
        if not y or length > iterations:
            return None
        x, iterations = y, iterations - length
    return x, iterations


def _segment(
    d: vdf.Discriminant, x: bytes, pi: bytes, b: int, iterations: int, check: bool = True
) -> bytes | None:
    """The end of a segment, if ``b`` is its prime; otherwise nothing, unless it goes unchecked."""
    _form(d, pi)
    if b == 0:
        raise RuntimeError("Division by 0")
    if b < 0:
        raise ValueError("B must not be negative")
    if not check:
        r = pow(2, iterations, b)
        return _forms(_chiavdf.product, d, pi, b.to_bytes(33), x, r.to_bytes(33))
    if b.bit_length() > 264:
        return None
    try:
        return vdf.verify_compact(d, x, pi, b.to_bytes(33), iterations, lenient=True, max_iterations=_U64[1])
    except Refused:
        return None


def _end(d: vdf.Discriminant, x: bytes, y: bytes, proof: bytes, iterations: int) -> bool:
    try:
        vdf.verify(d, x, y + proof, iterations, lenient=True, max_iterations=_U64[1])
    except Refused:
        return False
    except Malformed as why:
        raise RuntimeError(str(why)) from None
    return True


def _forms(function: Any, *arguments: Any) -> Any:
    """A function of forms, whose faults are chiavdf's exception."""
    try:
        return function(*arguments)
    except Malformed as why:
        raise RuntimeError(str(why)) from None


def _form(d: vdf.Discriminant, form: bytes) -> tuple[str, str]:
    return _forms(_chiavdf.coefficients, d, form)


def _whole(form: bytes) -> bytes:
    if len(form) != _FORM:
        raise RuntimeError(f"a form of {len(form)} bytes; it must have {_FORM}")
    return form


def _start(x: bytes) -> bytes:
    """The first 100 bytes. Where there are fewer, chiavdf reads on in memory; here zeros follow."""
    return x[:_FORM].ljust(_FORM, b"\0")


def _from_challenge(seed: bytes, bits: int) -> vdf.Discriminant:
    if bits <= 0:
        raise ValueError(f"discriminant_size_bits must be positive (got {bits})")
    if bits > _BITS:
        raise ValueError("discriminant_size_bits exceeds maximum allowed value")
    if bits == 8 and seed:
        # chiavdf's trial division refuses the other primes of this length.
        return vdf.Discriminant(-239)
    return vdf.Discriminant.from_challenge(seed, bits)


def _discriminant(number: int) -> vdf.Discriminant:
    if _bits(number) > _BITS:
        raise RuntimeError(f"a discriminant of {_bits(number)} bits; at most {_BITS} are allowed")
    return _forms(lambda: vdf.Discriminant(number, trust=True))


def _bits(number: int) -> int:
    return max(number.bit_length(), 1)


def _gmp(text: bytes) -> int:
    """The number in a text as ``mpz_set_str`` reads it with base 0; 0 if there is none."""
    found = re.fullmatch(rb"[ \t-\r]*(-?)((?:0[xX]|0[bB]|0)?)([0-9a-zA-Z \t-\r]*)", text.split(b"\0")[0])
    if not found or not found[2] and not found[3][:1].isdigit():
        return 0
    base = {b"": 10, b"0": 8, b"0x": 16, b"0b": 2}[found[2].lower()]
    digits = b"".join(found[3].split()).decode().lower().lstrip("0")
    if digits.strip(_DIGITS[base]):
        return 0
    # Python limits the decimal digits that it reads; longer numbers are too long for every use here.
    number = int(digits or "0", base) if len(digits) <= 2000 else 1 << _BITS
    return -number if found[1] else number


def _string(value: Any) -> bytes:
    if isinstance(value, str):
        try:
            return value.encode()
        except UnicodeEncodeError as why:
            raise TypeError(str(why)) from None
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    raise TypeError(f"a str or bytes is needed, not {type(value).__name__}")


def _bytes(value: Any) -> bytes:
    if not isinstance(value, bytes):
        raise TypeError(f"bytes are needed, not {type(value).__name__}")
    return bytes(value)


def _number(value: Any, limits: tuple[int, int]) -> int:
    if hasattr(type(value), "__index__"):
        value = operator.index(value)
    elif hasattr(type(value), "__int__") and not isinstance(value, float):
        value = int(value)
    else:
        raise TypeError(f"an int is needed, not {type(value).__name__}")
    if not limits[0] <= value <= limits[1]:
        raise TypeError(f"{value} is outside of {limits[0]} to {limits[1]}")
    return value
