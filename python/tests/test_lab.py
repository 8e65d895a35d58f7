"""Experiments as jobs: the same results as the command, whoever does them."""

import inspect
import json
import os
import threading

import pyarrow
import pyarrow.parquet
import pytest

from sutura import lab

NAME = "holzinger-page"
# Several rounds of jobs.
ROUNDS = "flec-bulk"
FEW = {"reduce": 1000}


def done(name, **options):
    """The results of all jobs, made one by one, the last one of each round first."""
    results = {}
    while (found := lab.jobs(name, results, **options)) is not None:
        assert len(found.jobs) == found.of
        earlier = dict(results)
        for job in reversed(found.jobs):
            results[job] = lab.run(name, job, earlier, **options)
    return results


@pytest.fixture(scope="module")
def results():
    return done(NAME)


def test_experiments_are_those_of_the_command(cli):
    listed = [line.split()[0] for line in cli().splitlines()]
    assert [experiment.name for experiment in lab.experiments()] == listed
    assert all(experiment.about for experiment in lab.experiments())


def test_reports_are_those_of_the_command(cli, results):
    report = lab.merge(NAME, results)
    assert report.markdown.strip() == cli(NAME).strip()
    assert json.loads(report.json) == json.loads(cli(NAME, "--json"))
    assert (report.name, report.failures, report.data) == (NAME, [], None)


def test_results_are_those_of_the_command(cli, results, tmp_path):
    kept = [NAME, "--out", tmp_path]
    for job in cli("jobs", *kept).split():
        cli("run", *kept, "--job", job)
    files = {file.stem: file.read_bytes() for file in tmp_path.glob("*.msgpack")}
    assert files == results
    parquet = tmp_path / "long.parquet"
    cli("merge", *kept, "--results", parquet)
    assert pyarrow.parquet.read_table(parquet).to_pydict() == lab.long(results).to_pydict()


def test_rounds_need_those_before():
    results = done(ROUNDS, **FEW)
    assert len({job.split("-")[0] for job in results}) > 1
    last = max(results, key=lambda job: tuple(map(int, job.split("-"))))
    with pytest.raises(lab.MissingResults, match="have no result yet"):
        lab.run(ROUNDS, last, {}, **FEW)
    assert lab.sweep(ROUNDS, **FEW).results.to_pydict() == lab.raw(results).to_pydict()


def test_tables_are_arrow(results):
    tables = lab.merge(NAME, results).tables
    for caption, table in tables.items():
        assert caption
        arrow = pyarrow.table(table)
        arrow.validate(full=True)
        assert arrow.column_names == table.column_names
        assert (len(arrow), arrow.to_pydict()) == (len(table), table.to_pydict())
        units = {field.name: field.metadata[b"unit"].decode() for field in arrow.schema if field.metadata}
        assert units == table.units
    assert pyarrow.schema(table) == arrow.schema


def test_other_libraries_read_tables(results):
    import duckdb
    import pandas
    import polars

    long = lab.long(results)
    assert polars.DataFrame(long).shape == (len(long), 4)
    arrow = pyarrow.table(long)
    assert duckdb.sql("select count(*), count(distinct job) from arrow").fetchall() == [(len(long), len(results))]
    assert pandas.DataFrame(long.to_pydict()).shape == (len(long), 4)


def test_results_come_as_tables_too(results):
    report = lab.merge(NAME, results).markdown
    for table in [lab.raw(results), pyarrow.table(lab.raw(results))]:
        assert lab.merge(NAME, table).markdown == report
    with pytest.raises(ValueError, match="job and result"):
        lab.merge(NAME, pyarrow.table({"x": [1]}))
    with pytest.raises(TypeError, match="not list"):
        lab.merge(NAME, [b"x"])


def test_long_tables_have_numbers_and_texts(results):
    table = lab.long(results).to_pydict()
    assert set(table) == {"job", "path", "number", "text"}
    for number, text in zip(table["number"], table["text"]):
        assert (number is None) != (text is None)


@pytest.mark.parametrize(
    ("options", "error", "told"),
    [
        ({"colour": 1}, TypeError, "colour: experiments have no such option: there are seed, reduce"),
        ({"seed": "x"}, TypeError, "seed: "),
        ({"seed": 1.5}, TypeError, "seed: "),
        ({"seed": -1}, ValueError, "seed: "),
        ({"seed": 1 << 64}, ValueError, "seed: "),
        ({"reduce": 0}, ValueError, "reduce: 0 is less than 1"),
        ({"policies": "auto"}, TypeError, "policies: it is a list"),
        ({"traces": ["/nonexistent"]}, ValueError, "traces: "),
        ({"links": ["delay=3"]}, ValueError, "links: duration `3`"),
        ({"links": "delay=3ms"}, TypeError, "links: "),
    ],
)
def test_wrong_options_are_told(options, error, told):
    for call in [lab.jobs, lambda name, **options: lab.run(name, "0-0", **options)]:
        with pytest.raises(error, match=told):
            call(NAME, **options)


def test_an_option_that_an_experiment_does_not_take_is_told():
    with pytest.raises(TypeError, match=f"{NAME} does not take --seeds; these do: "):
        lab.jobs(NAME, seeds=3)


def test_an_option_that_is_none_is_the_default(results):
    assert lab.run(NAME, "0-1", seed=None, seeds=None) == results["0-1"]
    assert lab.run(NAME, "0-1", seed=7) != results["0-1"]


def test_errors_have_the_text_of_the_experiment(results):
    for call, error, told in [
        (lambda: lab.jobs("nonsense"), ValueError, "no experiment `nonsense`"),
        (lambda: lab.run(NAME, "x"), ValueError, "is not a job"),
        (lambda: lab.run(NAME, "0-5"), ValueError, "the round has 5"),
        (lambda: lab.run(NAME, "7-0", results), ValueError, "no such round"),
        (lambda: lab.merge(NAME, {}), lab.MissingResults, "5 of 5 jobs of round 0"),
        (lambda: lab.jobs("marx-pages", corpus="/nonexistent"), ValueError, "nonexistent"),
        (lambda: lab.long({"0-0": b"\xc1"}), ValueError, "the result of job 0-0"),
        (lambda: lab.raw({"x": b""}), ValueError, "is not a job"),
        (lambda: lab.sweep(NAME, client=7), TypeError, "not int"),
    ]:
        with pytest.raises(error, match=told):
            call()
    assert issubclass(lab.MissingResults, lab.LabError)


def test_other_threads_go_on_while_a_job_runs(tmp_path):
    """The job reads a pipe that another thread writes: if no other thread ran meanwhile, it would never end."""
    pipe = tmp_path / "pages"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=["{}\n"])
    writer.start()
    with pytest.raises(ValueError, match="line 1"):
        lab.run("marx-pages", "0-0", corpus=pipe)
    writer.join()


def test_what_is_public_is_documented():
    for name in lab.__all__:
        assert inspect.getdoc(getattr(lab, name)), name
