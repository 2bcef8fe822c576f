"""Magma: known answers, buffers, misuse, files."""

import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import lanework
from lanework.magma import Ctr, Key, Mgm, Omac, decrypt_file, encrypt_file

# RFC 9058, A.2.1.
KEY = bytes.fromhex("ffeeddccbbaa99887766554433221100f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff")
NONCE = bytes.fromhex("12def06b3c130a59")
AAD = bytes.fromhex(
    "01010101010101010202020202020202030303030303030304040404040404040505050505050505ea"
)
PLAIN = bytes.fromhex(
    "ffeeddccbbaa998811223344556677008899aabbcceeff0a001122334455667799aabbcceeff0a001122334455667788"
    "aabbcceeff0a00112233445566778899aabbcc"
)
SEALED = bytes.fromhex(
    "c795066c5f9ea03b85113342459185ae1f2e00d6bf2b785d940470b8bb9c8e7d9a5dd3731f7ddc70ec27cb0ace6fa576"
    "70f65c646abb75d547aa37c3bcb5c34e03bb9c"
    "a7928069aa10fd10"
)


def test_mgm_gives_the_published_answer(buffer):
    cipher = Mgm(buffer(KEY))
    assert cipher.encrypt(buffer(NONCE), buffer(PLAIN), buffer(AAD)) == SEALED
    assert cipher.decrypt(buffer(NONCE), buffer(SEALED), buffer(AAD)) == PLAIN


def test_ctr_and_omac_give_the_published_answers(buffer):
    # GOST R 34.13-2015, A.2.2 and A.2.6.
    key = bytes.fromhex("ffeeddccbbaa99887766554433221100f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff")
    plain = bytes.fromhex("92def06b3c130a59db54c704f8189d204a98fb2e67a8024c8912409b17b57e41")
    sealed = bytes.fromhex("4e98110c97b7b93c3e250d93d6e85d69136d868807b2dbef568eb680ab52a12d")
    assert Ctr(buffer(key), buffer(bytes.fromhex("12345678"))).update(buffer(plain)) == sealed
    code = Omac(Key(key), tag_length=4)
    code.update(buffer(plain))
    assert code.copy().finalize() == bytes.fromhex("154e7210")
    code.verify(buffer(bytes.fromhex("154e7210")))


def test_pieces_and_places_give_the_same_bytes():
    plain = os.urandom(5000)
    whole = Ctr(KEY, b"\0\0\0\1").update(plain)
    pieces = Ctr(KEY, b"\0\0\0\1")
    assert b"".join(pieces.update(plain[i : i + 37]) for i in range(0, 5000, 37)) == whole
    assert pieces.position == 5000
    pieces.seek(2)
    assert pieces.update(plain[16:]) == whole[16:]
    place = bytearray(plain)
    assert Ctr(KEY, b"\0\0\0\1").update_into(place, place) == 5000
    assert place == whole
    other = bytearray(5000)
    assert Ctr(KEY, b"\0\0\0\1").update_into(plain, other) == 5000
    assert other == whole


@pytest.mark.parametrize("length", [1, 100, 5000])
def test_mgm_works_in_place_and_into_another_buffer(length):
    cipher, plain = Mgm(KEY), os.urandom(length)
    sealed = cipher.encrypt(NONCE, plain, AAD)
    out = bytearray(length + 8)
    assert cipher.encrypt_into(NONCE, plain, AAD, out) == length + 8
    assert out == sealed
    view = memoryview(out)
    view[:length] = plain
    cipher.encrypt_into(NONCE, view[:length], AAD, out)
    assert out == sealed
    assert cipher.decrypt_into(NONCE, out, AAD, view[:length]) == length
    assert out[:length] == plain
    apart = bytearray(length)
    cipher.decrypt_into(NONCE, sealed, AAD, apart)
    assert apart == plain


def test_a_forgery_is_refused_and_leaves_zeros():
    cipher = Mgm(KEY)
    for i in range(len(SEALED)):
        forged = bytearray(SEALED)
        forged[i] ^= 1
        with pytest.raises(lanework.Refused, match="not authentic"):
            cipher.decrypt(NONCE, forged, AAD)
    out = bytearray(b"x" * len(PLAIN))
    with pytest.raises(lanework.Refused):
        cipher.decrypt_into(NONCE, forged, AAD, out)
    assert out == bytes(len(PLAIN))


def _mgm(**changes):
    call = {"nonce": NONCE, "data": PLAIN, "associated_data": AAD} | changes
    return lambda: Mgm(KEY).encrypt(**call)


OVERLAPPING = bytearray(64)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: Key(KEY[1:]), lanework.Malformed, "31 bytes instead of 32"),
        (lambda: Mgm(KEY + b"x"), lanework.Malformed, "33 bytes instead of 32"),
        (lambda: Mgm("k" * 32), TypeError, "."),
        (lambda: Mgm(KEY, tag_length=3), lanework.Malformed, "tag of 3 bytes"),
        (_mgm(nonce=NONCE[1:]), lanework.Malformed, "7 bytes instead of 8"),
        (_mgm(nonce=b"\x80" + NONCE[1:]), lanework.Malformed, "top bit"),
        (_mgm(data=b"", associated_data=None), lanework.Malformed, "neither data nor associated data"),
        (_mgm(data="text"), TypeError, "bytes-like"),
        (lambda: Mgm(KEY).decrypt(NONCE, b"short", None), lanework.Malformed, "5 bytes are shorter"),
        (lambda: Mgm(KEY).encrypt_into(NONCE, b"data", None, bytearray(11)), lanework.Malformed, "needs 12 bytes"),
        (lambda: Mgm(KEY).encrypt_into(NONCE, b"data", None, bytes(12)), BufferError, "."),
        (
            lambda: Mgm(KEY).encrypt_into(NONCE, memoryview(OVERLAPPING)[1:5], None, memoryview(OVERLAPPING)[:12]),
            lanework.Malformed,
            "overlap",
        ),
        (
            lambda: Mgm(KEY).encrypt_into(NONCE, b"data", memoryview(OVERLAPPING)[:4], memoryview(OVERLAPPING)[:12]),
            lanework.Malformed,
            "overlap",
        ),
        (lambda: Ctr(KEY, b"123"), lanework.Malformed, "3 bytes instead of 4"),
        (lambda: Ctr(KEY, b"1234").seek(2**32 + 1), lanework.Exhausted, "counter would repeat"),
        (lambda: Ctr(KEY, b"1234").seek(-1), OverflowError, "."),
        (lambda: Ctr(KEY, b"1234").update_into(b"12", bytearray(3)), lanework.Malformed, "needs 2 bytes"),
        (lambda: Omac(KEY, tag_length=9), lanework.Malformed, "tag of 9 bytes"),
        (lambda: Omac(KEY).verify(bytes(7)), lanework.Malformed, "tag of 7 bytes"),
        (lambda: Omac(KEY).verify(bytes(8)), lanework.Refused, "not authentic"),
        (lambda: Mgm(Key(KEY, limit=10)).encrypt(NONCE, PLAIN), lanework.Exhausted, "limit of 10 bytes"),
        (lambda: Ctr(memoryview(KEY * 2)[::2], b"1234"), BufferError, "."),
    ],
)
def test_misuse_has_its_own_exception(call, error, words):
    with pytest.raises(error, match=words) as caught:
        call()
    if issubclass(error, lanework.Error):
        assert isinstance(caught.value, lanework.Error)
        assert isinstance(caught.value, ValueError) == (error is lanework.Malformed)


def test_a_finished_code_takes_nothing_more():
    code = Omac(KEY)
    code.update(b"a message")
    assert len(code.finalize()) == 8
    for call in (code.finalize, code.copy, lambda: code.update(b"x"), lambda: code.verify(bytes(8))):
        with pytest.raises(lanework.Malformed, match="finished"):
            call()


def test_a_key_counts_over_all_its_users_and_shows_nothing():
    key = Key(KEY, limit=2000)
    Ctr(key, b"1234").update(bytes(600))
    # Begun blocks, and four more of the message.
    Mgm(key).encrypt(NONCE, bytes(300), bytes(50))
    assert (key.used, key.limit, key.refused) == (600 + 304 + 56 + 32, 2000, 0)
    with pytest.raises(lanework.Refused):
        Mgm(key).decrypt(NONCE, bytes(20))
    assert (key.used, key.refused) == (992, 256)
    # A refused code counts as 256, whatever its length, and its message in the other count.
    code = Omac(key)
    code.update(bytes(500))
    with pytest.raises(lanework.Refused):
        code.verify(bytes(8))
    assert (key.used, key.refused) == (992 + 504, 512)
    assert key.export() == KEY
    for text in (repr(key), repr(Mgm(key)), repr(Ctr(key, b"1234")), repr(Omac(key))):
        assert "ff" not in text and "lanework.magma" in text
    assert Key.generate().export() != Key.generate().export()
    assert Mgm(Mgm.generate_key()).tag_length == 8


@pytest.mark.parametrize(
    ("size", "secret"),
    [(size, {"key": Key(KEY)}) for size in (0, 1, 65536, 200_001)]
    + [(100_000, {"key": KEY}), (9, {"passphrase": b"words", "iterations": 1000})],
)
def test_files_come_back(tmp_path, size, secret):
    plain, box, back = (tmp_path / name for name in ("plain", "box", "back"))
    plain.write_bytes(os.urandom(size))
    encrypt_file(plain, box, **secret)
    secret = {name: value for name, value in secret.items() if name != "iterations"}
    decrypt_file(str(box), str(back), **secret)
    assert back.read_bytes() == plain.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["back", "box", "plain"]


def test_files_that_are_wrong_leave_nothing(tmp_path):
    plain, box, back = (tmp_path / name for name in ("plain", "box", "back"))
    plain.write_bytes(os.urandom(200_000))
    encrypt_file(plain, box, KEY)
    good = box.read_bytes()
    for bad, key, error, words in [
        (good[:100_000] + b"x" + good[100_001:], KEY, lanework.Refused, "chunk 1 is damaged"),
        (good[:-1], KEY, lanework.Refused, "chunk 3"),
        (good + b"x", KEY, lanework.Refused, "chunk 3"),
        (good, bytes(32), lanework.Refused, "key or passphrase is not this container's"),
        (good[:50], KEY, lanework.Refused, "cut short"),
        (good[:7], KEY, lanework.Refused, "cut short"),
        (b"", KEY, lanework.Refused, "cut short"),
        (b"not a container", KEY, lanework.Malformed, "does not begin like one"),
    ]:
        box.write_bytes(bad)
        with pytest.raises(error, match=words):
            decrypt_file(box, back, key)
        assert not back.exists()
    assert len(list(tmp_path.iterdir())) == 2
    with pytest.raises(FileNotFoundError) as caught:
        decrypt_file(tmp_path / "nowhere", back, KEY)
    assert caught.value.filename == tmp_path / "nowhere"
    with pytest.raises(TypeError, match="either a key or a passphrase"):
        encrypt_file(plain, box)
    with pytest.raises(lanework.Malformed, match="power of two"):
        encrypt_file(plain, box, KEY, chunk=5000)
    with pytest.raises(lanework.Malformed, match="iterations"):
        encrypt_file(plain, box, passphrase=b"words", iterations=1)


# Uses a key that only a bytearray holds, overwrites that, and waits to be searched. It tells the key in disguise.
USES = '''
import sys
from lanework.magma import Ctr, Key, Mgm, Omac, decrypt_file, encrypt_file
plain, box, back = sys.argv[1:]
secret = bytearray(32)
with open("/dev/urandom", "rb", buffering=0) as source:
    assert source.readinto(secret) == 32
for _ in range(3):
    key = Key(secret)
    for form in (key, secret):
        sealed = Mgm(form).encrypt(bytes(8), b"a message")
        Mgm(form).decrypt(bytes(8), sealed)
        Ctr(form, bytes(4)).update(bytes(1000))
        Omac(form).update(b"a message")
        encrypt_file(plain, box, form)
        decrypt_file(box, back, form)
del key, form
disguised = bytes(byte ^ 0x5A for byte in secret)
for i in range(32):
    secret[i] = 0
if sys.stdin.readline() == "keep it\\n":
    kept = bytearray(byte ^ 0x5A for byte in disguised)
print(disguised.hex(), flush=True)
sys.stdin.read()
'''


def _finds(process, key):
    """How often a quarter of the key is in the memory that the process can write."""
    quarters = [key[i : i + 8] for i in range(0, 32, 8)]
    found = 0
    with open(f"/proc/{process.pid}/maps") as maps, open(f"/proc/{process.pid}/mem", "rb", 0) as memory:
        for line in maps:
            place, rights = line.split()[:2]
            if not rights.startswith("rw") or "[v" in line:
                continue
            start, end = (int(number, 16) for number in place.split("-"))
            memory.seek(start)
            piece = memory.read(end - start)
            found += sum(piece.count(quarter) for quarter in quarters)
    return found


@pytest.mark.parametrize("kept", [False, True])
def test_a_wiped_key_is_nowhere_in_memory(tmp_path, kept):
    plain = tmp_path / "plain"
    plain.write_bytes(bytes(100_000))
    command = [sys.executable, "-c", USES, plain, tmp_path / "box", tmp_path / "back"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        process.stdin.write("keep it\n" if kept else "wipe it\n")
        process.stdin.flush()
        key = bytes(byte ^ 0x5A for byte in bytes.fromhex(process.stdout.readline()))
        found = _finds(process, key)
        process.stdin.close()
    # A key that is kept is found: the search works.
    assert (found >= 4) if kept else (found == 0)


def test_long_work_leaves_the_gil_to_others(overlapped):
    assert overlapped(lambda n: Ctr(Key(KEY), b"1234").update(bytes(n)), 1 << 17)


def test_a_file_stops_for_a_signal(tmp_path, interruptible):
    pipe, out = tmp_path / "pipe", tmp_path / "out"
    os.mkfifo(pipe)

    def write():
        with open(pipe, "wb") as writer:
            try:
                for i in range(1000):
                    writer.write(bytes(1 << 20))
                    if i == 2:
                        os.kill(os.getpid(), signal.SIGINT)
            except BrokenPipeError:
                pass

    thread = threading.Thread(target=write)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        encrypt_file(pipe, out, KEY)
    thread.join()
    assert not out.exists()


@pytest.fixture
def umask():
    """The usual umask: others may read new files."""
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture
def box(tmp_path):
    """A container of 100 bytes."""
    plain, box = tmp_path / "plain", tmp_path / "box"
    plain.write_bytes(bytes(100))
    encrypt_file(plain, box, KEY)
    plain.unlink()
    return box


def _mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def _names(folder):
    return sorted(path.name for path in folder.iterdir())


def _halfway(call, data, target, look):
    """The call with a pipe as source. It gets the data after ``look`` has seen the partial file."""
    pipe = target.with_name("pipe")
    os.mkfifo(pipe)
    # Open for both, so that it does not wait for the call.
    writer = os.open(pipe, os.O_RDWR)
    with ThreadPoolExecutor(1) as pool:
        try:
            running = pool.submit(call, pipe, target, KEY)
            while not (partial := list(target.parent.glob("*.partial"))) and not running.done():
                time.sleep(0.001)
            assert partial, running.exception()
            look(*partial)
            os.write(writer, data)
        finally:
            os.close(writer)
        running.result()
    pipe.unlink()


@pytest.mark.parametrize(
    ("old", "encrypted"),
    [(None, 0o644), (0o600, 0o600), (0o640, 0o640), (0o444, 0o444), (0o777, 0o644)],
    ids=lambda mode: "new" if mode is None else f"{mode:o}",
)
@pytest.mark.parametrize("call", [encrypt_file, decrypt_file])
def test_a_file_has_the_readers_it_should_have_from_the_start(tmp_path, umask, box, call, old, encrypted):
    data, target = box.read_bytes(), tmp_path / "target"
    expected = encrypted if call is encrypt_file else encrypted & 0o600
    if old is not None:
        target.write_bytes(b"old")
        target.chmod(old)
    seen = []
    _halfway(call, data, target, lambda partial: seen.append(_mode(partial)))
    assert (seen, _mode(target)) == ([expected], expected)
    if call is decrypt_file:
        assert target.read_bytes() == bytes(100)
    assert _names(tmp_path) == ["box", "target"]


@pytest.mark.parametrize("before", [False, True])
def test_a_file_made_private_meanwhile_stays_private(tmp_path, umask, before):
    target = tmp_path / "target"
    if before:
        target.write_bytes(b"old")

    def look(_partial):
        target.touch()
        target.chmod(0o600)

    _halfway(encrypt_file, b"data", target, look)
    assert _mode(target) == 0o600
    assert _names(tmp_path) == ["target"]


@pytest.mark.parametrize("call", [encrypt_file, decrypt_file])
@pytest.mark.parametrize("name", ["same", "dot", "hard", "soft", "soft source"])
def test_a_file_is_not_its_own_result(tmp_path, box, call, name):
    source = target = box
    if name == "dot":
        target = f"{tmp_path}/./box"
    elif name == "hard":
        target = tmp_path / "hard"
        os.link(box, target)
    elif name.startswith("soft"):
        link = tmp_path / "soft"
        link.symlink_to("box")
        source, target = (link, box) if name == "soft source" else (box, link)
    data, names = box.read_bytes(), _names(tmp_path)
    with pytest.raises(lanework.Malformed, match="same file") as caught:
        call(source, target, KEY)
    assert str(source) in str(caught.value) and str(target) in str(caught.value)
    assert box.read_bytes() == data
    assert _names(tmp_path) == names


@pytest.mark.parametrize("call", [encrypt_file, decrypt_file])
def test_only_regular_files_are_replaced(tmp_path, box, call):
    pipe, link, folder, local = (tmp_path / name for name in ("pipe", "link", "folder", "local"))
    os.mkfifo(pipe)
    link.symlink_to("pipe")
    folder.mkdir()
    # Nobody can make or replace a file in the directory of terminals, so a fault here destroys no device.
    ours, theirs = os.openpty()
    with socket.socket(socket.AF_UNIX) as listener:
        # Relative, since an absolute path may be too long for a socket.
        here = os.getcwd()
        os.chdir(tmp_path)
        listener.bind("local")
        os.chdir(here)
        names = _names(tmp_path)
        for target in (pipe, link, folder, local, os.ttyname(theirs)):
            with pytest.raises(lanework.Malformed, match="not a regular file") as caught:
                call(box, target, KEY)
            assert str(target) in str(caught.value)
        with pytest.raises(lanework.Malformed, match="same file"):
            call(pipe, pipe, KEY)
    os.close(ours)
    os.close(theirs)
    assert pipe.is_fifo() and link.is_symlink() and folder.is_dir() and local.is_socket()
    assert _names(tmp_path) == names


def test_a_link_stays_a_link_unless_it_leads_nowhere(tmp_path, umask, box):
    folder = tmp_path / "folder"
    folder.mkdir()
    old, link, dangling = folder / "old", tmp_path / "link", tmp_path / "dangling"
    old.write_bytes(b"old")
    old.chmod(0o400)
    link.symlink_to(old)
    dangling.symlink_to("nowhere")
    for target in (link, dangling):
        decrypt_file(box, target, KEY)
        assert target.read_bytes() == bytes(100)
    assert link.is_symlink() and not dangling.is_symlink()
    assert (_mode(old), _mode(dangling)) == (0o400, 0o600)
    assert _names(tmp_path) == ["box", "dangling", "folder", "link"] and _names(folder) == ["old"]
