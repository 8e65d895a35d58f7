"""All jobs of an experiment, on this machine or on a cluster."""

from __future__ import annotations

import concurrent.futures
import importlib
import os
from collections.abc import Iterator
from typing import Any, NamedTuple, Optional

from . import _native
from ._native import Report, Table

ATTEMPTS = 5
"""How often a job is given to a Dask cluster whose workers die over it, before the sweep fails. Dask itself tries each
time as often as its setting ``distributed.scheduler.allowed-failures`` says."""


class Sweep(NamedTuple):
    """What came of all jobs of an experiment."""

    report: Report
    results: Table
    """A row for each job, in the order of rounds and places: ``job`` and ``result``."""


def sweep(name: str, *, client: Any = None, threads: Optional[int] = None, **options: Any) -> Sweep:
    """Does all jobs of an experiment and makes its report.

    ``client`` is a ``dask.distributed.Client``, the module ``ray`` after ``ray.init()``, or an executor of
    ``concurrent.futures``; without it, ``threads`` threads of this process do the jobs, one for each processor if that
    is not given. Workers need this package. If one is killed, the jobs that it had are done again, and no others. The
    results are the same bytes, whoever made them and in whatever order.
    """
    results: dict[str, bytes] = {}
    while (found := _native.jobs(name, results, options)) is not None:
        # Jobs of a round depend on earlier rounds alone.
        before = dict(results)
        for job, result in _round(client, threads, name, found[1], before, options):
            results[job] = result
    return Sweep(_native.merge(name, results, options), _native.raw(results))


def do(name: str, job: str, before: dict[str, bytes], options: dict[str, Any]) -> bytes:
    """Does a job. Workers call it."""
    return _native.run(name, job, before, options)


def _round(client: Any, threads: Optional[int], *work: Any) -> Iterator[tuple[str, bytes]]:
    if client is None:
        executor = concurrent.futures.ThreadPoolExecutor(threads or os.cpu_count() or 1)
        with executor:
            yield from _by_executor(executor, *work)
    elif isinstance(client, concurrent.futures.Executor):
        yield from _by_executor(client, *work)
    elif getattr(client, "__name__", None) == "ray":
        yield from _by_ray(client, *work)
    elif hasattr(client, "scatter") and hasattr(client, "submit"):
        yield from _by_dask(client, *work)
    else:
        raise TypeError(f"a client of Dask, the module ray or an executor is wanted, not {type(client).__name__}")


def _by_executor(
    executor: concurrent.futures.Executor, name: str, jobs: list[str], before: dict[str, bytes], options: dict[str, Any]
) -> Iterator[tuple[str, bytes]]:
    futures = {executor.submit(do, name, job, before, options): job for job in jobs}
    try:
        for future in concurrent.futures.as_completed(futures):
            yield futures[future], future.result()
    finally:
        # If one failed, those that have not begun are not wanted any more.
        for future in futures:
            future.cancel()


def _by_ray(
    ray: Any, name: str, jobs: list[str], before: dict[str, bytes], options: dict[str, Any]
) -> Iterator[tuple[str, bytes]]:
    # What a worker did that was killed is done again by another.
    task = ray.remote(do).options(max_retries=ATTEMPTS)
    shared = ray.put(before)
    waiting = {task.remote(name, job, shared, options): job for job in jobs}
    while waiting:
        done, _ = ray.wait(list(waiting))
        for reference in done:
            yield waiting.pop(reference), ray.get(reference)


def _by_dask(
    client: Any, name: str, jobs: list[str], before: dict[str, bytes], options: dict[str, Any]
) -> Iterator[tuple[str, bytes]]:
    distributed = importlib.import_module("distributed")
    missing = list(jobs)
    for attempt in range(1, ATTEMPTS + 1):
        # Results come to this process as soon as they are there, so that no worker takes them with it. Earlier rounds
        # go into the graph, which the scheduler has: workers that have them may die.
        futures = {client.submit(do, name, job, before, options, pure=False): job for job in missing}
        killed: list[str] = []
        for future in distributed.as_completed(futures):
            try:
                yield futures[future], future.result()
            except distributed.KilledWorker:
                if attempt == ATTEMPTS:
                    raise
                killed.append(futures[future])
        if not killed:
            return
        missing = killed
