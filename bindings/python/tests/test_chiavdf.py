"""lanework.compat.chiavdf beside the package chiavdf: the table of docs/python.md, a fuzz, and the opt-in."""

import inspect
import subprocess
import sys
from pathlib import Path

import chiavdf
import fuzz_chiavdf
import pytest

import lanework.compat.chiavdf as ours
from lanework import vdf

DOCUMENT = Path(__file__).parents[3] / "docs/python.md"
SEED, X = b"seed" * 8, b"\x08" + bytes(99)
D = chiavdf.create_discriminant(SEED, 512)
PROOF = chiavdf.prove(SEED, X, 512, 1000, "")
B = chiavdf.get_b_from_n_wesolowski(D, X, PROOF, 1000, 0)
N = int(D, 16)
LONG = hex(-(1 << 1024) - 3)
BAD = b"\x03" * 100


class Index:
    def __index__(self):
        return 512


class Int:
    def __int__(self):
        return 512


def _n(d=D, x=X, proof=PROOF, iterations=1000, bits=512, depth=0):
    return "verify_n_wesolowski", d, x, proof, iterations, bits, depth


def _with_b(b=B, x=X, proof=PROOF[100:], iterations=1000, depth=0, d=D):
    return "verify_n_wesolowski_with_b", d, b, x, proof, iterations, depth


def _get_b(d=D, x=X, proof=PROOF, iterations=1000, depth=0):
    return "get_b_from_n_wesolowski", d, x, proof, iterations, depth


def _one(x=X, y=PROOF[:100], proof=PROOF[100:], iterations=1000, d=D):
    return "verify_wesolowski", d, x, y, proof, iterations


def _create(seed=SEED, bits=512):
    return "create_discriminant", seed, bits


def _both(seed=SEED, bits=512, x=X, proof=PROOF, iterations=1000, depth=0):
    return "create_discriminant_and_verify_n_wesolowski", seed, bits, x, proof, iterations, depth


def _prove(seed=SEED, x=X, bits=512, iterations=1000, path=""):
    return "prove", seed, x, bits, iterations, path


def _form(data=X, d=D, *strict):
    return "bqfc_deserialize", d, data, *strict


def _raised():
    """A form with a higher b0: lenient decoding takes it, strict decoding does not."""
    d = vdf.Discriminant.from_challenge(b"a challenge", 64)
    for n in range(1, 1000):
        form = bytearray(vdf.evaluate(d, n))
        if form[1] == 0 and form[8] > 1 and not form[0] & 12:
            form[9] += 2 * form[8]
            return hex(int(d)), bytes(form)


TEXTS = [D, D.upper().replace("X", "x"), D.replace("0x", "0X"), f"-0x{0:03000}{-N:x}", D.encode(), bin(N), f"-0{-N:o}"]
TEXTS += [str(N), f" {N}", f"-{-N} \n", f"{N}\0x"]
LOW, RAISED = _raised()
TABLE = {
    "numbers as text": [(_n(d), True) for d in TEXTS]
    + [(_n(d), RuntimeError) for d in ("", "x", "-", "- 7", "+7", "0x", "7z", "08", "0b2", "7_7", "5", str(-N), str(N - 1))],
    "texts": [(_n(x=x, d=d), True) for d in (D, bytearray(D.encode())) for x in (X, X.decode(), bytearray(X))]
    + [(_n(x=x), TypeError) for x in (memoryview(X), None, 8, list(X), "\ud800")],
    "challenges": [(_create(), D)] + [(_create(seed), TypeError) for seed in ("seed", bytearray(SEED), None)],
    "integers": [(_create(bits=bits), D) for bits in (512, Index(), Int())]
    + [(_create(bits=bits), TypeError) for bits in (512.0, "512", None, 1 << 31, -(1 << 31) - 1)]
    + [(_n(iterations=n), TypeError) for n in (-1, 1 << 64, 1000.0)]
    + [(_n(iterations=n), False) for n in (True, (1 << 64) - 1)],
    "lengths of discriminants": [(_create(bits=bits), ValueError) for bits in (0, -8, 9, 1032)]
    + [(call, ValueError) for call in (_create(seed=b""), _both(seed=b""), _both(bits=9), _prove(bits=1032))]
    + [(_both(bits=bits), False) for bits in (0, -8, 1032)]
    + [(_create(seed=seed, bits=8), "-0xef") for seed in (b"one", b"two", SEED)],
    "disc_size_bits": [(_n(bits=bits), True) for bits in (1, 512, 1024)] + [(_n(bits=bits), False) for bits in (0, 1025)],
    "long discriminants": [(_n(d=LONG), False), (_with_b(d=LONG), (False, b"")), (_get_b(d=LONG), RuntimeError)]
    + [(_one(d=LONG), RuntimeError), (_form(d=LONG), RuntimeError)],
    "length of x": [(_n(x=X + b"1"), True), (_with_b(x=X + b"1", iterations=999), (False, b"")), (_get_b(x=X + b"1"), B)]
    + [(_one(x=X + b"1"), RuntimeError), (_prove(x=X[:99]), RuntimeError), (_form(X[:99]), RuntimeError)],
    "length of a proof": [(_n(proof=p), False) for p in (b"", PROOF[:-1], PROOF + b"1")]
    + [(_n(depth=n), False) for n in (1, 1 << 63)]
    + [(_with_b(proof=PROOF), (False, b"")), (_get_b(proof=PROOF[:-1]), RuntimeError)],
    "bad forms": [(_n(x=BAD), RuntimeError), (_n(x=BAD, proof=b""), False), (_n(proof=PROOF[:100] + BAD), RuntimeError)]
    + [(_with_b(x=BAD, proof=b""), RuntimeError), (_form(BAD), RuntimeError), (_prove(x=BAD), RuntimeError)]
    + [(_n(proof=PROOF + bytes(7) + b"\1" + bytes(32) + b"\5" + PROOF[100:], depth=1), False)]
    + [(_n(proof=BAD + BAD + bytes(7) + b"\1" + bytes(32) + b"\5" + PROOF[100:], depth=1), False)],
    "wrong proofs": [(_n(iterations=1001), False), (_one(iterations=1001), False), (_both(iterations=1001), False)]
    + [(_with_b(iterations=1001), (False, b"")), (_get_b(iterations=1001), B), (_both(), True), (_one(), True)],
    "no squarings": [(_n(proof=X + b"\4" + bytes(99), iterations=0), True), (_prove(iterations=0), X + b"\4" + bytes(99))],
    "B": [(_with_b(), (True, PROOF[:100])), (_with_b(str(int(B, 16))), (True, PROOF[:100])), (_with_b("3"), (False, b""))]
    + [(_with_b(b), RuntimeError) for b in ("0", "B")]
    + [(_with_b(f"-{B}"), ValueError), (_with_b(f"{B}00"), (False, b""))]
    + [(_with_b("0", proof=PROOF), (False, b"")), (_n(proof=PROOF + bytes(41) + PROOF[100:], depth=1), RuntimeError)],
    "lenient forms": [(_n(x=b"\x0b" + bytes(range(99))), True), (_form(b"\x08" + bytes(range(99))), (b"\0\2", b"\0\1"))]
    + [(_form(RAISED, LOW, strict), RuntimeError) for strict in (True, 1)]
    + [(_form(RAISED, LOW, strict), chiavdf.bqfc_deserialize(LOW, RAISED, False)) for strict in (False, None, 0)]
    + [(_form(X, D, []), TypeError), (_form(b"\4" + bytes(99)), (b"\0\1", b"\0\1"))],
    "proving": [(_prove(), PROOF), (_prove(iterations=1), chiavdf.prove(SEED, X, 512, 1, "")), (_prove(path=b""), PROOF)]
    + [(_prove(path="/no/such/file"), b""), (_prove(path=__file__), PROOF), (_prove(path=f"{__file__}\0"), PROOF)]
    + [(_prove(iterations=-1), TypeError), (_prove(path=None), TypeError)],
}


@pytest.mark.parametrize("row", TABLE)
def test_a_row_of_the_table(row):
    for (name, *arguments), expected in TABLE[row]:
        assert fuzz_chiavdf.compare(name, *arguments) == expected


def test_the_document_has_these_rows():
    section = DOCUMENT.read_text().split("## In place of chiavdf")[1].split("\n## ")[0]
    rows = [line.split("|")[1].strip() for line in section.splitlines() if line.startswith("| ")]
    assert rows[1 : len(TABLE) + 1] == list(TABLE)


def test_arguments_are_positional():
    for name in ours.__all__:
        with pytest.raises(TypeError):
            getattr(ours, name)()
        keywords = all(p.kind is not p.POSITIONAL_ONLY for p in inspect.signature(getattr(ours, name)).parameters.values())
        assert keywords == (name == "bqfc_deserialize")
    assert sorted(ours.__all__) == sorted(chiavdf.__all__)


def test_where_it_differs():
    # chiavdf reads past the end of x, searches forever, reserves memory for every squaring, and takes these numbers.
    assert ours.verify_n_wesolowski(D, b"\x08", PROOF, 1000, 512, 0)
    with pytest.raises(RuntimeError):
        ours.verify_n_wesolowski(D, b"", PROOF, 1000, 512, 0)
    with pytest.raises(ValueError, match="none is prime"):
        for seed in range(16):
            ours.create_discriminant(bytes([seed]), 1024)
    for d in ("17", "-8", "0"):
        with pytest.raises(RuntimeError):
            ours.verify_n_wesolowski(d, X, PROOF, 1000, 512, 0)


def test_the_shutdown_file_stops_a_proof(tmp_path, monkeypatch):
    file, looks = tmp_path / "running", []
    file.touch()

    def prove(*arguments, progress, **keywords):
        def look(now):
            looks.append(now)
            file.unlink(missing_ok=True)
            progress(now)

        return real(*arguments, progress=look, **keywords)

    real = vdf.prove
    monkeypatch.setattr(vdf, "prove", prove)
    assert ours.prove(SEED, X, 512, 1 << 40, str(file)) == b""
    assert len(looks) == 1


def test_mutants_have_the_same_outcome():
    seen = fuzz_chiavdf.run(1000, 256, 1) + fuzz_chiavdf.run(60, 1024, 1)
    outcomes = {name: {found for other, found in seen if other == name} for name in ("n", "with_b", "create", "wesolowski")}
    assert all({"True", "False", str(RuntimeError)} <= found for found in outcomes.values())
    assert sum(seen.values()) == 1060


def test_a_disagreement_is_found(monkeypatch):
    # The planted fault: strict decoding refuses what Chia's nodes accept.
    verify = vdf.verify
    monkeypatch.setattr(vdf, "verify", lambda *a, lenient, **k: verify(*a, **k))
    with pytest.raises(AssertionError, match="^chiavdf: (True|False|<class .RuntimeError.>), lanework: "):
        fuzz_chiavdf.run(1000, 256, 1)


def test_an_installed_chiavdf_stays_untouched_without_the_opt_in():
    program = "import sys, lanework, lanework.compat, chiavdf; print(chiavdf.__file__)"
    assert _python(program) == chiavdf.__file__
    program = "import lanework.compat.chiavdf, chiavdf; print(chiavdf.__file__)"
    assert _python(program) == chiavdf.__file__


def test_install():
    program = "import lanework.compat.chiavdf as ours; ours.install(); ours.install(); import chiavdf; print(chiavdf is ours)"
    assert _python(program) == "True"
    program = """
import chiavdf, lanework.compat.chiavdf
try:
    lanework.compat.chiavdf.install()
except ImportError as why:
    print(why)
"""
    assert "already imported" in _python(program)


def _python(program):
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()
