"""Times Python's calls beside the same work in Rust, and beside liboqs-python and chiavdf where they are installed.

`cargo build --release --example overhead`, then `python examples/overhead.py PATH/liboverhead.so`. Both sides of a pair
alternate in one process and one thread; a line has the medians and the median of the pairs' ratios.
"""

import sys
import time
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from statistics import median

from lanework import mayo, vdf

ROUNDS = 101


def load(path):
    spec = spec_from_file_location("overhead", path, loader=ExtensionFileLoader("overhead", path))
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def calls(times, call, clock=time.process_time):
    """Seconds of a call, in Python's loop: of the CPU, unless the other side counts those of the clock."""

    def seconds():
        start = clock()
        for _ in range(times):
            call()
        return (clock() - start) / times

    return seconds


def race(name, first, second):
    pairs = []
    for i in range(ROUNDS):
        a, b = (first(), second()) if i % 2 else (second(), first())[::-1]
        pairs.append((a, b))
    a, b = (1e6 * median(column) for column in zip(*pairs))
    apart = 1e6 * median(a - b for a, b in pairs)
    print(f"{name}: {a:.2f} us and {b:.2f} us, apart {apart:+.2f} us, ratio {median(b / a for a, b in pairs):.3f}")


def main():
    rust = load(sys.argv[1])
    secret = mayo.SecretKey.generate("MAYO-2")
    key, message, n = secret.public_key().expand(), b"a message of thirty-two bytes...", 256
    signature, bytes_ = secret.sign(message), secret.public_key().to_bytes()
    in_rust = lambda n, all: lambda: rust.verify(bytes_, message, signature, n, all) / n  # noqa: E731
    race("verify, Python and Rust", calls(n, lambda: key.verify(message, signature), time.perf_counter), in_rust(n, False))
    messages, signatures = [message] * n, [signature] * n
    batch = calls(1, lambda: mayo.verify_batch(key, messages, signatures), time.perf_counter)
    race(f"a batch of {n}, for each, Python and Rust", lambda: batch() / n, in_rust(n, True))
    try:
        import oqs

        ours, theirs = mayo.Signature("MAYO-2", round=2), oqs.Signature("MAYO-2")
        public, theirs_public = ours.generate_keypair(), theirs.generate_keypair()
        s, t = ours.sign(message), theirs.sign(message)
        race("sign, lanework and liboqs-python", calls(20, lambda: ours.sign(message)), calls(20, lambda: theirs.sign(message)))
        verify = calls(20, lambda: ours.verify(message, s, public))
        race("verify, lanework and liboqs-python", verify, calls(20, lambda: theirs.verify(message, t, theirs_public)))
    except ImportError:
        print("liboqs-python is not installed")
    try:
        import chiavdf

        import lanework.compat.chiavdf as ours

        for bits in (256, 512, 1024):
            d = vdf.Discriminant.from_challenge(b"a challenge", bits)
            x, proof = d.generator(), vdf.prove(d, 2000).proof
            arguments = (hex(int(d)), x, proof, 2000, bits, 0)
            sides = [calls(4, lambda m=m: m.verify_n_wesolowski(*arguments)) for m in (ours, chiavdf)]
            race(f"verify_n_wesolowski at {bits} bits, lanework and chiavdf", *sides)
        # The sizes that Chia's own tests use. Both sides prove with threads.
        generator = bytes([8]) + bytes(99)
        for bits in (16, 32, 64, 96, 128, 192, 256):
            arguments = (b"a challenge", generator, bits, 5000, "")
            if ours.prove(*arguments) != chiavdf.prove(*arguments):
                sys.exit(f"the proofs at {bits} bits differ")
            sides = [calls(1, lambda m=m: m.prove(*arguments), time.perf_counter) for m in (ours, chiavdf)]
            race(f"prove of 5,000 squarings at {bits} bits, lanework and chiavdf", *sides)
    except ImportError:
        print("chiavdf is not installed")


if __name__ == "__main__":
    main()
