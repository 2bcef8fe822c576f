"""Arrow: arrays of every binary type, slices, nulls, tables."""

import pytest

import lanework
from lanework import mayo

pa = pytest.importorskip("pyarrow")
from lanework.arrow import verify_table  # noqa: E402

SECRET = mayo.SecretKey.generate("MAYO-2")
PUBLIC = SECRET.public_key()
MESSAGES = [b"message %02d" % i for i in range(20)]
SIGNATURES = mayo.sign_batch(SECRET, MESSAGES)
KINDS = {"fixed": lambda width: pa.binary(width), "binary": lambda _: pa.binary(), "large": lambda _: pa.large_binary()}


@pytest.mark.parametrize("kind", KINDS)
def test_arrays_are_read_where_they_are(kind):
    messages = pa.array(MESSAGES, KINDS[kind](10))
    signatures = pa.array(SIGNATURES, KINDS[kind](len(SIGNATURES[0])))
    assert mayo.verify_batch(PUBLIC, messages, signatures) == [True] * 20
    assert mayo.verify_batch(PUBLIC, messages[3:9], signatures[3:9]) == [True] * 6
    assert mayo.verify_batch(PUBLIC, messages[3:9], signatures[4:10]) == [False] * 6
    assert mayo.verify_batch(PUBLIC, messages[:0], signatures[:0]) == []
    chunks = pa.chunked_array([messages[:5], messages[5:]])
    assert mayo.verify_batch(PUBLIC.expand(), chunks, SIGNATURES) == [True] * 20
    again = mayo.sign_batch(SECRET.expand(), messages[2:4])
    assert mayo.verify_batch(PUBLIC, MESSAGES[2:4], again) == [True, True]


@pytest.mark.parametrize("kind", KINDS)
def test_nulls_are_not_valid(kind):
    messages = pa.array([None if i == 4 else m for i, m in enumerate(MESSAGES)], KINDS[kind](10))
    signatures = pa.array([None if i == 7 else s for i, s in enumerate(SIGNATURES)], KINDS[kind](len(SIGNATURES[0])))
    expected = [i not in (4, 7) for i in range(20)]
    assert mayo.verify_batch(PUBLIC, messages, signatures) == expected
    assert mayo.verify_batch(PUBLIC, messages[3:], signatures[3:]) == expected[3:]
    with pytest.raises(lanework.Malformed, match="message 4 is null"):
        mayo.sign_batch(SECRET, messages)


def test_other_arrays_are_refused():
    with pytest.raises(TypeError, match="binary values"):
        mayo.sign_batch(SECRET, pa.array([1, 2]))


def _table(**columns):
    return pa.table({"message": MESSAGES, "signature": SIGNATURES} | columns)


@pytest.mark.parametrize("threads", [1, 0])
def test_a_table_under_one_key(threads):
    for key in (PUBLIC, PUBLIC.expand()):
        assert verify_table(_table(), key, threads=threads)["valid"].to_pylist() == [True] * 20
    batch = _table().to_batches()[0]
    assert verify_table(batch, PUBLIC, valid="ok").column("ok").to_pylist() == [True] * 20


def test_a_table_with_a_key_in_each_row():
    other = mayo.SecretKey.generate("MAYO-2")
    keys = [bytes(PUBLIC)] * 20
    keys[2], keys[5], keys[6] = bytes(other.public_key()), None, b"short"
    signatures = list(SIGNATURES)
    signatures[8], signatures[9] = None, b""
    table = _table(public_key=pa.array(keys, pa.binary()), signature=pa.array(signatures, pa.binary()))
    found = verify_table(table)["valid"].to_pylist()
    assert found == [i not in (2, 5, 6, 8, 9) for i in range(20)]
    halves = pa.concat_tables([table[:7], table[7:]])
    assert verify_table(halves)["valid"].to_pylist() == found
    assert verify_table(table[:0])["valid"].to_pylist() == []


def test_misuse_has_its_own_exception():
    with pytest.raises(lanework.Malformed, match="already has a column"):
        verify_table(_table(valid=[True] * 20), PUBLIC)
    with pytest.raises(KeyError):
        verify_table(_table(), PUBLIC, message="text")
    with pytest.raises(TypeError):
        verify_table(_table(signature=list(range(20))), PUBLIC)
    with pytest.raises(lanework.Malformed, match="no set"):
        verify_table(_table(public_key=[bytes(PUBLIC)] * 20), name="MAYO-4")
