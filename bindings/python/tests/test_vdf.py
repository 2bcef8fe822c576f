"""The delay function: known answers, refusals, batches, progress, and stopping."""

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import lanework
from lanework import vdf

# The proofs that chiavdf publishes, as the crate keeps them.
LINES = (Path(__file__).parents[3] / "crates/vdf/src/internals/known/chiavdf-vdf.txt").read_text().split()
RECORDS = [LINES[i : i + 6] for i in range(0, len(LINES), 6)]


def _question(record):
    challenge, bits, x, proof, iterations, depth = record
    d = vdf.Discriminant.from_challenge(bytes.fromhex(challenge), int(bits))
    return d, bytes.fromhex(x), bytes.fromhex(proof), int(iterations), int(depth)


D = vdf.Discriminant.from_challenge(b"a challenge", 256)
PROOF = vdf.prove(D, 2000)
QUESTION = (D, PROOF.x, PROOF.proof, 2000, 0)


def test_published_proofs_are_valid(buffer):
    for record in RECORDS[:3] + RECORDS[-3:]:
        d, x, proof, iterations, depth = _question(record)
        vdf.verify(d, buffer(x), buffer(proof), iterations, depth)
        with pytest.raises(lanework.Refused):
            vdf.verify(d, buffer(x), buffer(proof), iterations + 1, depth)


def test_a_published_discriminant():
    d = vdf.Discriminant.from_challenge(bytes.fromhex("6c3b9aa767f785b537c0"), 512)
    assert int(d) == -int(
        "9a8eaf9c52d9a5f1db648cdf7bcd04b35cb1ac4f421c978fa61fe1344b97d4199dbff700d24e7cfc0b785e4b8b8023dc"
        "49f0e90227f74f54234032ac3381879f",
        16,
    )
    assert vdf.Discriminant(int(d)) == d and hash(vdf.Discriminant(int(d))) == hash(d)
    assert (d.bits, d.form_length) == (512, 100)
    assert vdf.Discriminant.from_challenge(b"a challenge", 2048).form_length > 100


def test_a_proof_and_its_parts():
    y = vdf.evaluate(D, 2000)
    assert (PROOF.y, PROOF.iterations, PROOF.depth, PROOF.discriminant) == (y, 2000, 0, D)
    assert bytes(PROOF) == PROOF.proof and PROOF.proof.startswith(y)
    assert PROOF.x == D.generator()
    assert vdf.verify_compact(D, PROOF.x, PROOF.compact, PROOF.b, 2000) == y
    vdf.verify(*QUESTION, lenient=True)
    later = vdf.prove(D, 100, x=y, threads=1, memory=1 << 20)
    assert later.y == vdf.evaluate(D, 2100)


def test_segments():
    d = vdf.Discriminant.from_challenge(b"a challenge", 128)
    proof = vdf.prove(d, (1 << 16) + 5000, segments=1)
    assert proof.depth == 1
    vdf.verify(d, proof.x, proof.proof, proof.iterations, proof.depth)
    with pytest.raises(lanework.Malformed, match="at most"):
        vdf.verify(d, proof.x, proof.proof, proof.iterations, proof.depth, max_depth=0)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: vdf.Discriminant(5), lanework.Malformed, "not negative"),
        (lambda: vdf.Discriminant(-5), lanework.Malformed, "not 1 modulo 4"),
        (lambda: vdf.Discriminant(-15), lanework.Refused, "not the negative of a prime"),
        (lambda: vdf.Discriminant(-(1 << 100_000)), lanework.Malformed, "at most 2048"),
        (lambda: vdf.Discriminant(-(1 << 3000)), lanework.Malformed, "."),
        (lambda: vdf.Discriminant("-7"), TypeError, "."),
        (lambda: vdf.Discriminant.from_challenge(b""), lanework.Malformed, "challenge is empty"),
        (lambda: vdf.Discriminant.from_challenge(b"c", 1023), lanework.Malformed, "multiple of 8"),
        (lambda: vdf.Discriminant.from_challenge(b"c", 4096), lanework.Malformed, "at most 2048"),
        (lambda: vdf.Discriminant(-3).generator(), lanework.Malformed, "not 1 modulo 8"),
        (lambda: vdf.prove(D, 0), lanework.Malformed, "no squarings"),
        (lambda: vdf.prove(D, -1), OverflowError, "."),
        (lambda: vdf.prove(D, 10, x=b"short"), lanework.Malformed, "the input: a form of 5 bytes"),
        (lambda: vdf.prove(D, 10, x=b"\x04" + bytes(98) + b"\x01"), lanework.Malformed, "the input"),
        (lambda: vdf.prove(D, 10, threads=5000), lanework.Malformed, "at most 1024"),
        (lambda: vdf.prove(D, 10, interval=-1.0), lanework.Malformed, "the interval"),
        (lambda: vdf.prove(D, 10, progress=5), TypeError, "callable"),
        (lambda: vdf.prove(int(D), 10), TypeError, "."),
        (lambda: vdf.evaluate(D, 0), lanework.Malformed, "no squarings"),
        (lambda: vdf.compact(D, []), lanework.Malformed, "no squarings"),
        (lambda: vdf.compact(D, [(5, b"y")]), lanework.Malformed, "the result of claim 0"),
        (lambda: vdf.verify(D, PROOF.x, PROOF.proof[:-1], 2000), lanework.Malformed, "199 bytes|199"),
        (lambda: vdf.verify(D, b"x", PROOF.proof, 2000), lanework.Malformed, "the input"),
        (lambda: vdf.verify(D, PROOF.x, PROOF.proof, 0), lanework.Malformed, "no squarings"),
        (lambda: vdf.verify(D, PROOF.x, PROOF.proof, 2000, max_iterations=1999), lanework.Malformed, "at most 1999"),
        (lambda: vdf.verify(D, PROOF.x, PROOF.proof, 2001), lanework.Refused, "does not lead to the result"),
        (lambda: vdf.verify_compact(D, PROOF.x, PROOF.compact, b"b", 2000), lanework.Malformed, "1 bytes instead of 33"),
        (lambda: vdf.verify_compact(D, PROOF.x, PROOF.compact, bytes(33), 2000), lanework.Refused, "B is no prime"),
        (lambda: vdf.verify_batch([QUESTION[:3]]), ValueError, "tuple of length"),
    ],
)
def test_misuse_has_its_own_exception(call, error, words):
    with pytest.raises(error, match=words) as caught:
        call()
    if issubclass(error, lanework.Error):
        assert isinstance(caught.value, lanework.Error)


@pytest.mark.parametrize("threads", [1, 2, 0])
@pytest.mark.parametrize("lenient", [False, True])
def test_a_poison_item_is_that_items_own(threads, lenient):
    items = [QUESTION] * 6
    items[1] = (D, PROOF.x, b"", 2000, 0)
    items[2] = (D, PROOF.x, PROOF.proof, 2001, 0)
    items[4] = (D, b"", PROOF.proof, 2000, 1 << 60)
    found = vdf.verify_batch(items, threads=threads, lenient=lenient)
    assert found == [True, False, False, True, False, True]
    assert vdf.verify_batch([]) == []


def test_results_that_are_known_are_proved_on_the_way():
    told = []
    wrong = vdf.evaluate(D, 700)
    proofs = vdf.compact(
        D, [(2000, PROOF.y), (500, vdf.evaluate(D, 500)), (600, wrong)], outcome=lambda i, proof: told.append((i, proof))
    )
    assert proofs[0].proof == PROOF.proof
    assert proofs[1].iterations == 500 and proofs[2] is None
    vdf.verify(D, proofs[1].x, proofs[1].proof, 500)
    assert sorted(i for i, _ in told) == [0, 1, 2]
    assert all(proofs[i] is proof for i, proof in told)


def test_progress_is_told_and_its_exception_stops_the_proof():
    seen = []
    vdf.prove(D, 50_000, progress=seen.append)
    assert {progress.phase for progress in seen} >= {"squaring"}
    assert all(0 <= progress.done <= progress.total for progress in seen)
    assert "squaring" in repr(seen[0])

    class Enough(Exception):
        pass

    def stop(_):
        raise Enough

    for call in (
        lambda: vdf.prove(D, 1 << 40, progress=stop),
        lambda: vdf.evaluate(D, 1 << 40, progress=stop),
        lambda: vdf.compact(D, [(1 << 40, PROOF.y)], progress=stop),
        lambda: vdf.compact(D, [(1 << 40, PROOF.y), (10, PROOF.y)], outcome=lambda *_: stop(0)),
    ):
        with pytest.raises(Enough):
            call()


# Runs in a process of its own, so that a call that cannot be stopped ends with it. Another thread presses Ctrl-C: it runs
# once the call gives up the GIL, since Python never takes it away here.
CTRL_C = """
import os, signal, sys, threading, time
from lanework import vdf

presses = []

class Pressed(Exception):
    pass

def twice(*_):
    presses.append(None)
    if len(presses) == 2:
        raise Pressed

def press():
    gate.acquire()
    os.kill(os.getpid(), signal.SIGINT)
    if HANDLER is twice:
        while not presses:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

def threads(expected):
    # A thread that was joined stays in the list for a moment.
    for _ in range(1000):
        if len(os.listdir("/proc/self/task")) == expected:
            return True
        time.sleep(0.01)

D = vdf.Discriminant.from_challenge(b"a challenge", 256)
Y = vdf.evaluate(D, 10)
HANDLER, STOP = {handler}
signal.signal(signal.SIGINT, HANDLER)
sys.setswitchinterval(1_000_000)
gate = threading.Lock()
gate.acquire()
thread = threading.Thread(target=press)
before = len(os.listdir("/proc/self/task"))
thread.start()
gate.release()
try:
    {work}
except STOP:
    thread.join()
    print("stopped" if threads(before) else "a thread is left")
"""


def _ctrl_c(work, handler="signal.default_int_handler, KeyboardInterrupt", start=signal.SIG_DFL):
    program = CTRL_C.format(work=work, handler=handler)
    set_signal = lambda: signal.signal(signal.SIGINT, start)  # noqa: E731
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, preexec_fn=set_signal)
    assert (done.stdout, done.stderr, done.returncode) == ("stopped\n", "", 0)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    "work",
    [
        "vdf.prove(D, 1 << 40, threads={})",
        "vdf.prove(D, 1 << 40, threads={}, segments=63)",
        "vdf.compact(D, [(1 << 40, Y)], threads={})",
    ],
    ids=["prove", "segments", "compact"],
)
def test_ctrl_c_stops_and_leaves_no_thread(threads, work):
    _ctrl_c(work.format(threads))


def test_ctrl_c_stops_an_evaluation():
    _ctrl_c("vdf.evaluate(D, 1 << 40)")


def test_ctrl_c_asks_the_handler_of_the_program():
    # The first press is answered without an exception, and the work goes on.
    _ctrl_c("vdf.prove(D, 1 << 40)", handler="twice, Pressed")


def test_ctrl_c_works_where_the_process_began_with_it_ignored():
    _ctrl_c("vdf.prove(D, 1 << 40)", start=signal.SIG_IGN)


def test_a_stopped_proof_goes_on_from_its_checkpoint(tmp_path):
    file = tmp_path / "checkpoint"

    class Enough(Exception):
        pass

    def stop(progress):
        if progress.done > 1000:
            raise Enough

    with pytest.raises(Enough):
        vdf.prove(D, 500_000, checkpoint=file, progress=stop)
    proof = vdf.prove(D, 500_000, checkpoint=str(file))
    assert proof.resumed > 0
    vdf.verify(D, proof.x, proof.proof, 500_000)
    with pytest.raises(lanework.Malformed, match="the checkpoint"):
        vdf.prove(D, 499_999, checkpoint=file)


def test_long_work_leaves_the_gil_to_others(overlapped):
    class Enough(Exception):
        pass

    # The first look, in the middle of the work, lets the other thread go. A later one ends the call when that has run.
    for work in (
        lambda look: vdf.prove(D, 1 << 40, progress=look),
        lambda look: vdf.evaluate(D, 1 << 40, progress=look),
        lambda look: vdf.compact(D, [(1 << 40, PROOF.y)], progress=look),
    ):
        gate, ran, looks = threading.Lock(), [], []
        gate.acquire()
        thread = threading.Thread(target=lambda: (gate.acquire(), ran.append(True)))
        thread.start()

        def look(_):
            if not looks:
                gate.release()
            looks.append(None)
            if ran or len(looks) == 100:
                raise Enough

        with pytest.raises(Enough):
            work(look)
        assert ran
        thread.join()
    assert overlapped(lambda n: vdf.verify_batch([QUESTION] * n), 1)
