"""MAYO signatures, rounds 3 and 2, sets MAYO-1, MAYO-2, MAYO-3 and MAYO-5.

>>> from lanework import mayo
>>> secret = mayo.SecretKey.generate("MAYO-2")
>>> signing, verifying = secret.expand(), secret.public_key().expand()
>>> messages = [b"one", b"two", b"three"]
>>> signatures = mayo.sign_batch(signing, messages)
>>> mayo.verify_batch(verifying, messages, signatures)
[True, True, True]

``Signature`` has the shape of liboqs-python's class:

>>> with mayo.Signature("MAYO-2") as signer:
...     public_key = signer.generate_keypair()
...     signature = signer.sign(b"a message")
...     signer.verify(b"a message", signature, public_key)
True
"""

from typing import Any, Self

from ._lanework import Malformed, Refused
from ._lanework import mayo as _mayo

PublicKey = _mayo.PublicKey
SecretKey = _mayo.SecretKey
SigningKey = _mayo.SigningKey
VerifyingKey = _mayo.VerifyingKey
sign_batch = _mayo.sign_batch
verify_batch = _mayo.verify_batch

__all__ = ["PublicKey", "SecretKey", "Signature", "SigningKey", "VerifyingKey", "sign_batch", "verify_batch"]


class Signature:
    """A signer and verifier in the shape of liboqs-python's ``oqs.Signature``.

    ``alg_name`` is MAYO-1, MAYO-2, MAYO-3 or MAYO-5. liboqs has round 2 of these sets, and the rounds never share a key:
    pass ``round=2`` to exchange keys and signatures with it.
    """

    def __init__(self, alg_name: str, secret_key: Any = None, *, round: int = 3) -> None:
        self.alg_name = alg_name
        self.round = round
        self._signing = None
        if secret_key is None:
            # Refuses a wrong name at once; the key is thrown away.
            SecretKey.generate(alg_name, round=round)
        else:
            self._signing = SecretKey.from_bytes(secret_key, alg_name, round=round)

    def generate_keypair(self) -> bytes:
        """Makes a secret key, which stays in the object, and returns its public key."""
        self._signing = SecretKey.generate(self.alg_name, round=self.round)
        return self._signing.public_key().to_bytes()

    def export_secret_key(self) -> bytes:
        """The secret bytes."""
        return self._secret().export()

    def sign(self, message: Any) -> bytes:
        """The signature of a message."""
        return self._secret().sign(message)

    def verify(self, message: Any, signature: Any, public_key: Any) -> bool:
        """Whether the signature is valid. One of the wrong length is not; a malformed public key is an error."""
        key = PublicKey.from_bytes(public_key, self.alg_name, round=self.round)
        try:
            key.verify(message, signature)
        except (Refused, Malformed):
            return False
        return True

    def free(self) -> None:
        """Forgets the secret key, whose memory is wiped."""
        self._signing = None

    def _secret(self):
        if self._signing is None:
            raise Malformed("there is no secret key: call generate_keypair, or pass one")
        return self._signing

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.free()

    def __repr__(self) -> str:
        return f"<lanework.mayo.Signature {self.alg_name} round {self.round}>"
