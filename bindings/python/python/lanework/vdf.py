"""Class groups and the Wesolowski delay function with Chia's encodings.

>>> from lanework import vdf
>>> d = vdf.Discriminant.from_challenge(b"a challenge", 256)
>>> proof = vdf.prove(d, 1000)
>>> vdf.verify(d, proof.x, proof.proof, 1000)
>>> vdf.verify(d, proof.x, proof.proof, 1001)
Traceback (most recent call last):
lanework.Refused: the proof does not lead to the result
"""

from ._lanework import vdf as _vdf

Discriminant = _vdf.Discriminant
Progress = _vdf.Progress
Proof = _vdf.Proof
compact = _vdf.compact
evaluate = _vdf.evaluate
prove = _vdf.prove
verify = _vdf.verify
verify_batch = _vdf.verify_batch
verify_compact = _vdf.verify_compact

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
