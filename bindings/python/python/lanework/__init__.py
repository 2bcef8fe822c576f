"""MAYO signatures, the Magma cipher and class-group delay functions on every CPU lane.

>>> from lanework import mayo
>>> secret = mayo.SecretKey.generate("MAYO-2")
>>> signature = secret.sign(b"a message")
>>> secret.public_key().verify(b"a message", signature)

Every error is a subclass of ``Error``. Buffers are used without a copy, and no other thread may write to them during a
call.
"""

from . import magma, mayo, vdf
from ._lanework import Error, Exhausted, Fault, Malformed, Refused, __version__

__all__ = ["Error", "Exhausted", "Fault", "Malformed", "Refused", "__version__", "magma", "mayo", "vdf"]
