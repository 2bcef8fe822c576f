"""Compares lanework.compat.chiavdf with chiavdf: `python fuzz_chiavdf.py --bits 256 --count 1000000 --seed 1`.

Real proofs of up to two segments before the last, and mutants of them, go through every function that verifies or decodes.
"""

import argparse
import collections
import random

import chiavdf

import lanework.compat.chiavdf as ours
from lanework import vdf

FORM, SEGMENT = 100, 141
LENGTHS = (8, 16, 24, 32, 40, 48, 64, 96, 128, 160, 192, 256)


def outcome(function, *arguments):
    """A value, or the class of the exception. Malformed is ours, and a ValueError."""
    try:
        return function(*arguments)
    except (RuntimeError, ValueError, TypeError) as why:
        return next(kind for kind in (RuntimeError, ValueError, TypeError) if isinstance(why, kind))


def compare(name, *arguments):
    """The outcome of both, which is one."""
    theirs, mine = (outcome(getattr(module, name), *arguments) for module in (chiavdf, ours))
    assert theirs == mine, f"chiavdf: {theirs!r}, lanework: {mine!r}: {name}{arguments!r}"
    return theirs


class Real:
    """A real proof: a chain of one to three segments."""

    def __init__(self, random, bits):
        self.seed, self.bits = random.randbytes(32), bits
        d = vdf.Discriminant.from_challenge(self.seed, bits) if bits > 8 else vdf.Discriminant(-239)
        self.d = hex(int(d))
        self.x = d.generator() if random.random() < 0.5 else vdf.evaluate(d, random.randint(1, 50))
        self.depth, self.iterations, x, self.segments = random.choice((0, 0, 0, 1, 2)), 0, self.x, b""
        for i in range(self.depth + 1):
            length = random.randint(1, 300)
            proof = vdf.prove(d, length, x=x, threads=1)
            self.iterations, x = self.iterations + length, proof.y
            if i < self.depth:
                self.segments = length.to_bytes(8) + proof.b + proof.compact + self.segments
        self.head, self.b = proof.proof, proof.b

    def question(self):
        return [self.d, self.x, self.head + self.segments, self.iterations, self.depth]


def other_form(random, bits, form):
    """A mutant of a form: fields of the encoding, or anything."""
    units = -(-bits // 32)
    out, size = bytearray(form), min(form[1], units - 1)
    kind = random.randrange(9)
    if kind == 0:
        out[random.randrange(FORM)] ^= 1 << random.randrange(8)
    elif kind == 1:
        out[random.randrange(min(5 + 3 * units, FORM))] = random.randrange(256)
    elif kind == 2:
        out[0] ^= random.choice((1, 2, 3))
    elif kind == 3:
        out[0] |= random.choice((4, 8, 12))
    elif kind == 4:
        # A higher b0, the field after a, t and g.
        at = 3 + 3 * units - size
        b0 = int.from_bytes(out[at : at + size + 1], "little") + random.choice((1, 2, 4, 8, 2 * out[at - size - 1]))
        out[at : at + size + 1] = (b0 % 256 ** (size + 1)).to_bytes(size + 1, "little")
    elif kind == 5:
        out[1] = random.choice((0, 1, units - 1, units, 255))
    elif kind == 6:
        # Small fields.
        out = bytearray(FORM)
        out[0] = random.randrange(4)
        for at in (2, 2 + 2 * units, 2 + 3 * units, 3 + 3 * units):
            out[at] = random.choice((0, 1, 2, 3, random.randrange(256)))
    elif kind == 7:
        out[2 : 4 + 3 * units] = random.randbytes(2 + 3 * units)
    else:
        out = bytearray(form[: random.randrange(FORM)]) if random.random() < 0.5 else out + b"\0"
    return bytes(out)


def mutate(random, pool, real):
    """A question that differs from a real one in one to three places, or in none."""
    d, x, blob, iterations, depth = real.question()
    for _ in range(random.choice((0, 1, 1, 1, 2, 3))):
        kind = random.randrange(10)
        if kind == 0:
            changed = other_form(random, real.bits, x)
            x = changed if len(changed) >= FORM else x
        elif kind <= 4 and len(blob) >= 2 * FORM:
            places = [0, FORM, *range(2 * FORM + 41, len(blob) - FORM + 1, SEGMENT)]
            at = random.choice(places)
            blob = blob[:at] + other_form(random, real.bits, blob[at : at + FORM]) + blob[at + FORM :]
        elif kind == 5:
            iterations = max(0, random.choice((iterations + 1, iterations - 1, 0, 2**64 - 1, random.getrandbits(64))))
        elif kind == 6 and len(blob) >= 2 * FORM + SEGMENT:
            # A segment's squarings or B.
            at = 2 * FORM + SEGMENT * random.randrange((len(blob) - 2 * FORM) // SEGMENT)
            changed = bytearray(blob)
            if random.random() < 0.2:
                changed[at + 8 : at + 41] = bytes(33)
            else:
                changed[at + random.randrange(41)] ^= 1 << random.randrange(8)
            blob = bytes(changed)
        elif kind == 7:
            depth = random.choice((0, 1, 2, 3, 2**63, 2**64 - 1))
        elif kind == 8:
            other = random.choice(pool)
            x, blob = random.choice(((other.x, blob), (x, other.head + blob[2 * FORM :]), (blob[:FORM].ljust(FORM, b"\0"), blob)))
        else:
            d = random.choice((hex(int(d, 16) - 8), random.choice(pool).d))
    return d, x, blob, iterations, depth


def one(random, pool):
    """One comparison; the function's name and its outcome."""
    real = random.choice(pool)
    d, x, blob, iterations, depth = mutate(random, pool, real)
    name = random.choice(("n", "n", "n", "with_b", "with_b", "get_b", "wesolowski", "form", "create"))
    if name == "n":
        found = compare("verify_n_wesolowski", d, x, blob, iterations, random.choice((1, 1024, 1025)), depth)
    elif name == "with_b":
        b = int.from_bytes(real.b) + random.choice((0, 0, 0, 0, 0, 0, 2, -1, 1 << 264, -(1 << 264)))
        found = compare("verify_n_wesolowski_with_b", d, random.choice((str, hex))(b), x, blob[FORM:], iterations, depth)
    elif name == "get_b":
        found = compare("get_b_from_n_wesolowski", d, x, blob, iterations, depth)
    elif name == "wesolowski":
        found = compare("verify_wesolowski", d, x, blob[:FORM], blob[FORM : 2 * FORM], iterations)
    elif name == "create":
        arguments = (real.seed, real.bits, x, blob, iterations, depth)
        found = compare("create_discriminant_and_verify_n_wesolowski", *arguments)
    else:
        found = compare("bqfc_deserialize", d, random.choice((x, blob[:FORM], blob[FORM : 2 * FORM])), random.random() < 0.5)
    shown = found[0] if name == "with_b" and isinstance(found, tuple) else found
    return name, str(shown) if isinstance(shown, (bool, type)) else "value"


def run(count, bits, seed, pool_size=40):
    """`count` comparisons of `bits` bits, or of lengths up to that if there are such."""
    source = random.Random(f"{seed} {bits}")
    lengths = [n for n in LENGTHS if n <= bits] if bits <= LENGTHS[-1] else [bits]
    seen, pool = collections.Counter(), []
    for i in range(count):
        if i % 1000 == 0:
            pool = [Real(source, source.choice(lengths)) for _ in range(pool_size)]
        seen[one(source, pool)] += 1
    return seen


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--bits", type=int, default=256)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    for (name, found), count in sorted(run(given.count, given.bits, given.seed).items()):
        print(f"{name:12} {found:28} {count}")
    print(f"{given.count} comparisons, no disagreement")


if __name__ == "__main__":
    main()
