from . import magma as magma, mayo as mayo, vdf as vdf
from ._lanework import (
    Error as Error,
    Exhausted as Exhausted,
    Fault as Fault,
    Malformed as Malformed,
    Refused as Refused,
    __version__ as __version__,
)

__all__ = ["Error", "Exhausted", "Fault", "Malformed", "Refused", "__version__", "magma", "mayo", "vdf"]
