"""MAYO: known answers, buffers, refusals, batches."""

import hashlib
import json
from pathlib import Path

import pytest

import lanework
from lanework import mayo

# SHA-256 of record 0 of the published response files.
PUBLISHED = {
    ("MAYO-1", 2): "178adb997203ae0512b1bd6fa4a5cfae25805d88aeb0ce5226981423153418ee",
    ("MAYO-1", 3): "860cb113d7f5d7c8cb34d8f2a4845eea3480d6a0add3c8aada3186061c9e1288",
}
KNOWN = json.loads((Path(__file__).parent / "known_mayo.json").read_text())
SETS = [(name, round) for round in (3, 2) for name in ("MAYO-1", "MAYO-2", "MAYO-3", "MAYO-5")]


@pytest.mark.parametrize("record", KNOWN, ids=lambda record: f"{record['name']}-round{record['round']}")
def test_the_published_record(record, buffer):
    name, round = record["name"], record["round"]
    lines = ["count = 0"]
    for field in ("seed", "mlen", "msg", "pk", "sk", "smlen", "sm"):
        lines.append(f"{field} = {record[field]}")
    text = "".join(line + "\n" for line in lines)
    assert hashlib.sha256(text.encode()).hexdigest() == PUBLISHED[name, round]

    seed, public, message, signed = (bytes.fromhex(record[field]) for field in ("sk", "pk", "msg", "sm"))
    secret = mayo.SecretKey.from_bytes(buffer(seed), name, round=round)
    key = mayo.PublicKey.from_bytes(buffer(public), name, round=round)
    assert secret.export() == seed
    assert secret.public_key() == key
    assert bytes(key) == public
    signature = signed[: key.signature_length]
    key.verify(buffer(message), buffer(signature))
    key.expand().verify(buffer(message), buffer(signature))
    assert mayo.verify_batch(key, [buffer(message)] * 2, [buffer(signature)] * 2) == [True, True]


@pytest.mark.parametrize(("name", "round"), SETS)
def test_every_set_signs_and_verifies(name, round):
    secret = mayo.SecretKey.generate(name, round=round)
    public = secret.public_key()
    signing, verifying = mayo.SigningKey(secret), mayo.VerifyingKey(public)
    for key in (secret, public, signing, verifying):
        assert (key.name, key.round) == (name, round)
        assert f"{name} round {round}" in repr(key)
    assert signing.backend == verifying.backend
    for signature in (secret.sign(b"m"), signing.sign(b"m"), signing.sign(b"m", verify=True)):
        public.verify(b"m", signature)
        verifying.verify(b"m", signature)
        with pytest.raises(lanework.Refused, match="not valid"):
            verifying.verify(b"n", signature)
    assert verifying.public_key() == public


def test_key_files_come_back():
    for round in (2, 3):
        secret = mayo.SecretKey.generate("MAYO-1", round=round)
        again = mayo.SecretKey.from_pem(secret.to_pem())
        assert again == secret and (again.name, again.round) == ("MAYO-1", round)
        public = mayo.PublicKey.from_pem(secret.public_key().to_pem())
        assert public == secret.public_key() and hash(public) == hash(secret.public_key())
    assert secret != mayo.SecretKey.generate("MAYO-1")
    assert secret.export().hex() not in repr(secret)


SECRET = mayo.SecretKey.generate("MAYO-2")
PUBLIC = SECRET.public_key()
SIGNATURE = SECRET.sign(b"m")


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: mayo.SecretKey.generate("MAYO-4"), lanework.Malformed, "no set \"MAYO-4\""),
        (lambda: mayo.SecretKey.generate("MAYO-2", round=1), lanework.Malformed, "no round 1"),
        (lambda: mayo.SecretKey.from_bytes(bytes(23), "MAYO-2"), lanework.Malformed, "has 24 bytes, this one has 23"),
        (lambda: mayo.SecretKey.from_bytes("k" * 24, "MAYO-2"), TypeError, "bytes-like"),
        (lambda: mayo.SecretKey.from_pem("text"), lanework.Malformed, "cannot be read"),
        (lambda: mayo.PublicKey.from_pem(SECRET.to_pem()), lanework.Malformed, "cannot be read"),
        (lambda: mayo.PublicKey.from_bytes(bytes(9), "MAYO-2"), lanework.Malformed, "this one has 9"),
        (lambda: PUBLIC.verify(b"m", SIGNATURE[:-1]), lanework.Malformed, "this one has"),
        (lambda: PUBLIC.verify(b"m", bytes(len(SIGNATURE))), lanework.Refused, "not valid"),
        (lambda: PUBLIC.verify("m", SIGNATURE), TypeError, "bytes-like"),
        (lambda: mayo.SigningKey(PUBLIC), TypeError, "."),
        (lambda: mayo.SecretKey.generate("MAYO-2", round=300), lanework.Malformed, "no round 300"),
        (lambda: mayo.sign_batch(PUBLIC, [b"m"]), TypeError, "^the key is a SigningKey, .* not PublicKey"),
        (lambda: mayo.verify_batch([PUBLIC, PUBLIC.expand()], [], []), TypeError, "^the key is a VerifyingKey, .* not list"),
        (lambda: mayo.sign_batch(SECRET, b"m"), TypeError, "list of bytes-like"),
        (lambda: mayo.sign_batch(SECRET, [b"m", "m"]), TypeError, "^item 1 is not bytes-like: str"),
        (lambda: mayo.sign_batch(SECRET, [b"m"], threads=1025), lanework.Malformed, "at most 1024"),
        (lambda: mayo.sign_batch([SECRET], [b"m", b"n"]), lanework.Malformed, "2 keys are needed, 1 were given"),
        (lambda: mayo.verify_batch(PUBLIC, [b"m"], []), lanework.Malformed, "1 signatures are needed, 0"),
        (lambda: mayo.verify_batch([PUBLIC], [], []), lanework.Malformed, "0 keys are needed, 1"),
        (lambda: mayo.verify_batch(PUBLIC, [b"m"], [None]), TypeError, "^item 0 is not bytes-like: NoneType"),
    ],
)
def test_misuse_has_its_own_exception(call, error, words):
    with pytest.raises(error, match=words) as caught:
        call()
    if issubclass(error, lanework.Error):
        assert isinstance(caught.value, lanework.Error)


@pytest.mark.parametrize("threads", [1, 2, 0])
def test_a_poison_item_is_that_items_own(threads):
    messages = [b"message %d" % i for i in range(40)]
    for key in (SECRET, SECRET.expand(), [SECRET] * 40):
        signatures = mayo.sign_batch(key, messages, threads=threads)
    expected = [True] * 40
    signatures[3] = b""
    signatures[11] = signatures[12]
    signatures[17] += b"x"
    signatures[39] = bytes(len(SIGNATURE))
    for i in (3, 11, 17, 39):
        expected[i] = False
    for key in (PUBLIC, PUBLIC.expand(), [PUBLIC] * 40, [PUBLIC.expand()] * 40):
        assert mayo.verify_batch(key, messages, signatures, threads=threads) == expected
    keys = [PUBLIC] * 40
    keys[5] = mayo.SecretKey.generate("MAYO-2").public_key()
    keys[6] = mayo.SecretKey.generate("MAYO-1").public_key()
    expected[5] = expected[6] = False
    assert mayo.verify_batch(keys, messages, signatures, threads=threads) == expected
    assert mayo.verify_batch(PUBLIC, [], []) == []
    assert mayo.sign_batch(SECRET, []) == []


def test_a_batch_lets_go_of_its_buffers():
    message = bytearray(b"m")
    mayo.sign_batch(SECRET, [message, message])
    with pytest.raises(TypeError, match="item 2 is not bytes-like"):
        mayo.sign_batch(SECRET, [message, message, None])
    message.append(0)  # a BufferError while it is exported


def test_a_list_of_another_length_than_it_says():
    class Grows(list):
        def __len__(self):
            return 1

    with pytest.raises(lanework.Malformed, match="the list grew"):
        mayo.sign_batch(SECRET, Grows([b"m", b"n"]))


def test_batches_read_arrays():
    numpy = pytest.importorskip("numpy")
    messages = numpy.arange(7 * 50, dtype="uint8").reshape(7, 50)
    signatures = mayo.sign_batch(SECRET, messages)
    rows = numpy.frombuffer(b"".join(signatures), dtype="uint8").reshape(7, len(SIGNATURE))
    assert mayo.verify_batch(PUBLIC, messages, rows) == [True] * 7
    assert mayo.verify_batch(PUBLIC, [row.tobytes() for row in messages], signatures) == [True] * 7
    for wrong in (messages[0], messages.astype("uint16"), messages.reshape(7, 5, 10)):
        with pytest.raises(TypeError, match="two-dimensional"):
            mayo.sign_batch(SECRET, wrong)
    with pytest.raises(ValueError, match="contiguous"):
        mayo.sign_batch(SECRET, messages[:, ::2])


def test_the_class_in_the_shape_of_liboqs():
    with mayo.Signature("MAYO-1", round=2) as signer:
        public = signer.generate_keypair()
        signature = signer.sign(b"m")
        assert signer.verify(b"m", signature, public)
        assert not signer.verify(b"n", signature, public)
        assert not signer.verify(b"m", signature[:-1], public)
        with pytest.raises(lanework.Malformed):
            signer.verify(b"m", signature, public[:-1])
        secret = signer.export_secret_key()
    with pytest.raises(lanework.Malformed, match="no secret key"):
        signer.sign(b"m")
    again = mayo.Signature("MAYO-1", secret, round=2)
    assert mayo.Signature("MAYO-1", round=2).verify(b"n", again.sign(b"n"), public)
    with pytest.raises(lanework.Malformed):
        mayo.Signature("Dilithium2")


def test_long_work_leaves_the_gil_to_others(overlapped):
    signing = SECRET.expand()
    signature = signing.sign(b"m")
    assert overlapped(lambda n: mayo.sign_batch(signing, [b"m"] * n), 10)
    assert overlapped(lambda n: mayo.verify_batch(PUBLIC, [b"m"] * n, [signature] * n), 10)
    assert overlapped(lambda n: SECRET.sign(bytes(n)), 1 << 17)
