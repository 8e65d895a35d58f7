"""All jobs of an experiment on several workers: the same bytes however many, and if one dies."""

import concurrent.futures
import functools
import hashlib

import distributed
import pyarrow
import pytest

import dying
from sutura import lab

NAME = "flec-bulk"
OPTIONS = {"reduce": 1000}


def digest(sweep):
    table = pyarrow.table(sweep.results)
    rows = zip(table["job"].to_pylist(), table["result"].to_pylist())
    return hashlib.sha256(b"".join(job.encode() + b"\0" + result for job, result in rows)).hexdigest()


@pytest.fixture(scope="module")
def alone():
    return lab.sweep(NAME, threads=1, **OPTIONS)


class KillingClient(distributed.Client):
    """A client the first worker of which that gets a certain job is killed."""

    marker = None

    def submit(self, function, *arguments, **settings):
        return super().submit(functools.partial(dying.once, self.marker, function), *arguments, **settings)


def on_dask(workers, client_of, **settings):
    with distributed.LocalCluster(
        n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster, client_of(cluster) as client:
        return lab.sweep(NAME, client=client, **OPTIONS, **settings)


@pytest.mark.parametrize("workers", [2, 4])
def test_dask_has_the_same_results(alone, workers):
    found = on_dask(workers, distributed.Client)
    assert digest(found) == digest(alone)
    assert found.report.markdown == alone.report.markdown


def test_a_killed_worker_costs_only_its_jobs(alone, tmp_path, monkeypatch):
    marker = tmp_path / "killed"
    monkeypatch.setattr(KillingClient, "marker", str(marker))
    assert digest(on_dask(2, KillingClient)) == digest(alone)
    assert marker.exists()


def test_executors_do_jobs(alone):
    with concurrent.futures.ThreadPoolExecutor(3) as executor:
        assert digest(lab.sweep(NAME, client=executor, **OPTIONS)) == digest(alone)


def test_a_job_that_fails_ends_it():
    with pytest.raises(ValueError, match="policy"):
        lab.sweep("auto-zoo", only=0, seeds=1, policies=["nonsense"])


def test_ray_does_jobs(alone):
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=2, include_dashboard=False)
    try:
        assert digest(lab.sweep(NAME, client=ray, **OPTIONS)) == digest(alone)
    finally:
        ray.shutdown()
