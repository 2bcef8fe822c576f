"""Verifies the same rows with Ray on one node and without it, in turns: `python examples/cluster.py ROWS ROWS_OF_A_BLOCK PAIRS`.

Needs Ray, with room for three times the rows. It runs without Ray's dashboard, and keeps the result's column alone.
"""

import sys
import time
from os import cpu_count
from statistics import median

import pyarrow as pa
import pyarrow.compute as pc
import ray

import lanework.ray
from lanework import arrow, mayo

rows, block, pairs = (int(word) for word in sys.argv[1:])
secret = mayo.SecretKey.generate("MAYO-2")
messages = [b"message %07d" % i for i in range(min(rows, 100_000))]
signatures = mayo.sign_batch(secret.expand(), messages, threads=0)
part = pa.table({"message": pa.array(messages, pa.binary(15)), "signature": pa.array(signatures, pa.binary(len(signatures[0])))})
table = pa.concat_tables([part] * (rows // len(messages))).combine_chunks()
ray.init(include_dashboard=False, num_cpus=cpu_count(), log_to_driver=False)
ray.data.DataContext.get_current().enable_progress_bars = False
public = secret.public_key()
dataset = ray.data.from_arrow([table[i : i + block] for i in range(0, len(table), block)]).materialize()


def with_ray():
    done = lanework.ray.verify(dataset, public).select_columns(["valid"]).materialize()
    return sum(pc.sum(batch["valid"]).as_py() for batch in done.iter_batches(batch_size=None, batch_format="pyarrow"))


def without():
    return pc.sum(arrow.verify_table(table, public.expand(), threads=0)["valid"]).as_py()


def seconds(work):
    begun = time.perf_counter()
    assert work() == len(table)
    return time.perf_counter() - begun


seconds(with_ray), seconds(without)
times = [(seconds(with_ray), seconds(without)) for _ in range(pairs)]
a, b = (len(table) / median(column) for column in zip(*times))
print(f"{a:,.0f} rows a second with Ray, {b:,.0f} without, ratio {median(b / a for a, b in times):.2f}")
