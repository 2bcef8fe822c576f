"""Ray: two nodes of one CPU each on this machine. Workers are killed; rows and jobs are poisoned."""

import os
import re
import signal
import threading

import pytest

from lanework import Malformed, mayo, vdf

pa = pytest.importorskip("pyarrow")
ray = pytest.importorskip("ray")
import ray.cluster_utils  # noqa: E402

import lanework.ray  # noqa: E402
from lanework import arrow  # noqa: E402

SECRET = mayo.SecretKey.generate("MAYO-2")
PUBLIC = SECRET.public_key()
ROWS = 4000


@pytest.fixture(scope="module", autouse=True)
def cluster():
    nodes = ray.cluster_utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    nodes.add_node(num_cpus=1)
    ray.init(address=nodes.address, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    assert ray.cluster_resources()["CPU"] == 2 and len(ray.nodes()) == 2
    yield
    ray.shutdown()
    nodes.shutdown()


@pytest.fixture(scope="module")
def table():
    """Rows with a number, a message and a signature; three of the rows are poisoned."""
    messages = [b"message %06d" % i for i in range(ROWS)]
    signatures = mayo.sign_batch(SECRET.expand(), messages, threads=0)
    signatures[7], signatures[8], messages[9] = None, b"short", None
    return pa.table({"row": range(ROWS), "message": pa.array(messages, pa.binary()), "signature": pa.array(signatures, pa.binary())})


def _dataset(table):
    return ray.data.from_arrow([table[i : i + 250] for i in range(0, ROWS, 250)])


def _rows(dataset, column):
    """The column in the rows' order. Each row is there once."""
    rows = sorted(dataset.take_all(), key=lambda row: row["row"])
    assert [row["row"] for row in rows] == list(range(ROWS))
    return [row[column] for row in rows]


def test_poison_rows_are_not_valid_and_spare_the_others(table):
    found = _rows(lanework.ray.verify(_dataset(table), PUBLIC), "valid")
    assert found == [i not in (7, 8, 9) for i in range(ROWS)]
    keys = pa.array([bytes(PUBLIC) if i != 3 else b"no key" for i in range(ROWS)], pa.binary())
    each = lanework.ray.verify(_dataset(table.append_column("public_key", keys)), valid="ok", threads=1)
    assert _rows(each, "ok") == [i not in (3, 7, 8, 9) for i in range(ROWS)]


def test_signatures_are_made_where_the_key_is_loaded(table, tmp_path):
    path = tmp_path / "secret.pem"
    path.write_text(SECRET.to_pem())
    dataset = _dataset(table.drop_columns(["signature"]))

    def load():
        return mayo.SecretKey.from_pem(path.read_text())

    signed = lanework.ray.sign(dataset, load).materialize()
    assert [i for i, one in enumerate(_rows(signed, "signature")) if one is None] == [9]
    assert _rows(lanework.ray.verify(signed, PUBLIC), "valid") == [i != 9 for i in range(ROWS)]
    with pytest.raises(ray.exceptions.RayError, match="already has a column"):
        lanework.ray.sign(signed, load).materialize()
    # A key is never sent by mistake.
    with pytest.raises(TypeError, match="cannot pickle"):
        lanework.ray.sign(dataset, lambda: SECRET).materialize()


def test_a_worker_that_is_killed_loses_no_row_and_repeats_none(table, tmp_path):
    marker = str(tmp_path / "killed")

    def kill_once(batch):
        if 2000 in batch["row"].to_pylist():
            try:
                os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return batch
            os.kill(os.getpid(), signal.SIGKILL)
        return batch

    dataset = _dataset(table).map_batches(kill_once, batch_format="pyarrow")
    found = _rows(lanework.ray.verify(dataset, PUBLIC), "valid")
    assert os.path.exists(marker)
    assert found == [i not in (7, 8, 9) for i in range(ROWS)]


def test_no_buffer_is_copied(table):
    def addresses(batch):
        """Where the signatures lie, where the library reads them, and whether Ray shares that memory between processes."""
        column = batch["signature"]
        data = column.chunk(0).buffers()[2]
        read = arrow._parts(arrow._one(column))[0]
        with open("/proc/self/maps") as maps:
            spans = [re.match(r"(\w+)-(\w+) .*(?:/dev/shm|plasma)", line) for line in maps]
        shared = any(int(span[1], 16) <= data.address < int(span[2], 16) for span in spans if span)
        return pa.table({"same": [read.address == data.address], "shared": [shared]})

    found = _dataset(table).map_batches(addresses, batch_format="pyarrow", batch_size=None).take_all()
    assert found and all(row["same"] and row["shared"] for row in found)


D = vdf.Discriminant.from_challenge(b"a challenge", 1024)


def test_jobs_are_proved_and_a_poison_job_is_its_own(tmp_path):
    proof = vdf.prove(D, 3000, segments=0)
    claims = [(3000, proof.y), (2000, proof.y)]
    jobs = [(int(D), claims, None), (int(D), [(5, b"y")], None), (-15, claims, None), (int(D), claims[:1], D.generator())]
    found = dict(lanework.ray.compact(jobs, str(tmp_path)))
    assert found[0] == [proof.proof, None] and found[3] == [proof.proof]
    assert isinstance(found[1], Malformed) and "claim 0" in str(found[1])
    assert "prime" in str(found[2]) and sorted(found) == [0, 1, 2, 3]


def _workers():
    """Processes of Ray that run a job."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/cmdline") as line:
                if line.read().startswith("ray::_compact"):
                    yield int(name)
        except OSError:
            continue


def test_a_job_goes_on_from_its_checkpoint(tmp_path):
    iterations = 1_000_000
    y = vdf.evaluate(D, iterations)
    killed, log = [], tmp_path / "log"

    def note(progress):
        with open(log, "a") as file:
            print(progress.resumed, file=file)

    def kill():
        times = set()
        while not killed and not ended.wait(0.01):
            # A checkpoint's name is a hash. The first one holds nothing yet.
            times |= {path.stat().st_mtime_ns for path in tmp_path.iterdir() if len(path.name) == 64}
            if len(times) >= 2:
                killed.extend(_workers())
                for worker in killed:
                    os.kill(worker, signal.SIGKILL)

    ended, thread = threading.Event(), threading.Thread(target=kill)
    thread.start()
    jobs = [(int(D), [(iterations, y)], None)]
    [(index, [proof])] = lanework.ray.compact(jobs, str(tmp_path), interval=0.2, progress=note)
    ended.set()
    thread.join()
    resumed = list(map(int, log.read_text().split()))
    assert len(killed) == 1 and index == 0 and resumed[0] == 0 < resumed[-1] < iterations
    vdf.verify(D, D.generator(), proof, iterations)
