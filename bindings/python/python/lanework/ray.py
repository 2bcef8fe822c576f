"""MAYO signatures of Ray datasets, and proofs of delays over a Ray cluster: needs ``ray[data]``.

Ray schedules, runs a batch or a job again whose worker went down, and gives each result once. A task takes as many of the
cluster's CPUs as ``threads`` says, one if it does not.
"""

import hashlib

import pyarrow as pa
import ray

from . import arrow, mayo, vdf
from ._lanework import Error, Malformed

__all__ = ["compact", "sign", "verify"]


def verify(dataset, key=None, *, threads=1, **options):
    """The dataset with a further column: ``lanework.arrow.verify_table``, batch by batch, with its options."""
    public = None if key is None else (bytes(key), key.name, key.round)
    options |= {"public": public, "threads": threads}
    return dataset.map_batches(_verify, batch_format="pyarrow", fn_kwargs=options, num_cpus=threads)


def _verify(table, public, **options):
    key = public and mayo.PublicKey.from_bytes(*public[:2], round=public[2]).expand()
    return arrow.verify_table(table, key, **options)


def sign(dataset, load, *, threads=1, message="message", signature="signature"):
    """The dataset with a further column of signatures, null where the message is null.

    ``load`` returns the secret key. It is called where the key is used, so that no key is sent.
    """
    options = {"load": load, "threads": threads, "message": message, "signature": signature}
    return dataset.map_batches(_sign, batch_format="pyarrow", fn_kwargs=options, num_cpus=threads)


def _sign(table, load, threads, message, signature):
    if signature in table.column_names:
        raise Malformed(f"the table already has a column {signature!r}")
    rows = table.column(message)
    signed = iter(mayo.sign_batch(load().expand(), rows.drop_null(), threads=threads))
    column = [next(signed) if valid else None for valid in rows.is_valid().to_pylist()]
    return table.append_column(signature, pa.array(column, pa.binary()))


def compact(jobs, folder, **options):
    """Pairs of a job's index and its outcome, as they come: proofs as bytes, ``None`` for a wrong result; or an exception.

    Jobs are ``(discriminant, claims, x)``, the first as a number; options are those of ``lanework.vdf.compact``. A job keeps
    its checkpoint in ``folder``, an absolute path that all nodes share.
    """
    task = ray.remote(num_cpus=options.setdefault("threads", 1))(_compact)
    waiting = {task.remote(*job, folder, options): i for i, job in enumerate(jobs)}
    while waiting:
        done = ray.wait(list(waiting))[0][0]
        try:
            outcome = ray.get(done)
        except ray.exceptions.RayError as error:
            outcome = error
        yield waiting.pop(done), outcome


def _compact(discriminant, claims, x, folder, options):
    name = hashlib.sha256(repr((discriminant, claims, x)).encode()).hexdigest()
    try:
        proofs = vdf.compact(vdf.Discriminant(discriminant), claims, x=x, checkpoint=f"{folder}/{name}", **options)
        return [proof and proof.proof for proof in proofs]
    except Error as error:
        return error
