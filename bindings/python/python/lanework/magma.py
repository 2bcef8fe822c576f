"""Magma (GOST R 34.12-2015): MGM, CTR, OMAC and files.

>>> from lanework.magma import Key, Mgm
>>> cipher = Mgm(Key.generate())
>>> nonce = (1).to_bytes(8, "big")                      # a counter: never twice under one key
>>> sealed = cipher.encrypt(nonce, b"what only two shall know", b"a header")
>>> cipher.decrypt(nonce, sealed, b"a header")
b'what only two shall know'
>>> cipher.decrypt(nonce, sealed, b"another header")
Traceback (most recent call last):
lanework.Refused: refused: the data or the key is not authentic
"""

from ._lanework import magma as _magma

Ctr = _magma.Ctr
Key = _magma.Key
Mgm = _magma.Mgm
Omac = _magma.Omac
decrypt_file = _magma.decrypt_file
encrypt_file = _magma.encrypt_file

__all__ = ["Ctr", "Key", "Mgm", "Omac", "decrypt_file", "encrypt_file"]
