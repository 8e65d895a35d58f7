"""Sutura's experiments, as jobs that run anywhere.

An experiment is a list of independent jobs, or several *rounds* of them, each of which needs the results of those
before. ``jobs`` lists those of the next round, ``run`` does one and returns its result as bytes, and ``merge`` makes the
report of all results. Results are passed in and out, so that no file system is shared; they are the same whoever makes
them. ``sweep`` does all of it, on a Dask or Ray cluster if there is one::

    import sutura.lab
    report, results = sutura.lab.sweep("flec-bulk", reduce=100)
    print(report.markdown)

Options of experiments are keyword arguments, and are the same in all calls for one experiment: ``seed``, ``reduce`` (one
in so many repetitions), ``seeds``, ``paths``, ``only``, ``seconds``, ``policies``,
``links`` and ``apps`` (lists of texts), ``own`` (a list of classes of :mod:`sutura.policy`), ``pages``, ``corpus`` and
``traces`` (files, which workers need to have too). ``sutura lab --help`` describes them. An option that
does not exist is a ``TypeError``, one with a wrong value a ``ValueError``. An experiment that fails raises ``LabError``.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, NamedTuple, Optional

from . import _native
from ._native import LabError, MissingResults, Report, Table
from ._sweep import Sweep, sweep

__all__ = [
    "Experiment",
    "LabError",
    "MissingResults",
    "Report",
    "Round",
    "Sweep",
    "Table",
    "experiments",
    "jobs",
    "long",
    "merge",
    "raw",
    "run",
    "sweep",
]


class Experiment(NamedTuple):
    """An experiment."""

    name: str
    about: str


class Round(NamedTuple):
    """A round of jobs."""

    number: int
    """Which round it is, from 0."""
    jobs: list[str]
    """The names of its jobs that have no result yet."""
    of: int
    """How many jobs it has."""


def experiments() -> list[Experiment]:
    """All experiments."""
    return [Experiment(name, about) for name, about in _native.experiments()]


def jobs(name: str, results: Any = None, **options: Any) -> Optional[Round]:
    """The first round with jobs that have no result; ``None`` if all are done.

    ``results`` are those that are there: a mapping of the names of jobs to bytes, or a table of Arrow with the columns
    ``job`` and ``result``, as :func:`raw` makes it.
    """
    found = _native.jobs(name, as_mapping(results), options)
    return None if found is None else Round(*found)


def run(name: str, job: str, results: Any = None, **options: Any) -> bytes:
    """Does one job and returns its result. Other threads of Python go on meanwhile.

    ``results`` needs to have those of all rounds before, and none of the job's own round.
    """
    return _native.run(name, job, as_mapping(results), options)


def merge(name: str, results: Any, **options: Any) -> Report:
    """The report of an experiment all of whose jobs are done. Raises :class:`MissingResults` if some are not."""
    return _native.merge(name, as_mapping(results), options)


def raw(results: Any) -> Table:
    """The results as a table, a row each: ``job`` and ``result``, which is MessagePack."""
    return _native.raw(as_mapping(results))


def long(results: Any) -> Table:
    """A row for each number and each text in the results: ``job``, ``path``, ``number``, ``text``.

    A path has the names of fields and the places in lists, as ``arms.0.latency.3``. One of ``number`` and ``text`` is
    empty. Numbers are exact up to 2**53.
    """
    return _native.long(as_mapping(results))


def as_mapping(results: Any) -> dict[str, bytes]:
    """The results as a mapping of the names of jobs to bytes."""
    if results is None:
        return {}
    if isinstance(results, Mapping):
        return dict(results)
    if isinstance(results, Table):
        columns = results.to_pydict()
    elif hasattr(results, "__arrow_c_stream__"):
        try:
            pyarrow = importlib.import_module("pyarrow")
        except ImportError as error:
            raise TypeError("tables of other libraries need pyarrow: pip install sutura[arrow]") from error
        columns = pyarrow.table(results).to_pydict()
    else:
        raise TypeError(f"results are a mapping or a table of Arrow, not {type(results).__name__}")
    if not {"job", "result"} <= columns.keys():
        raise ValueError("a table of results has the columns job and result")
    return dict(zip(columns["job"], columns["result"]))
