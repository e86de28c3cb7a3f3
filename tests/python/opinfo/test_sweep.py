"""Rows of the speed sweep for their values, and what its report says. The whole sweep is `python -m tests.bench.sweep`."""
import json
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")  # torch.testing._internal wants it

sys.path.append(str(Path(__file__).parents[3]))
from tests.bench.sweep import report  # noqa: E402
from tests.bench.sweep.__main__ import arguments, jobs  # noqa: E402
from tests.bench.sweep.operands import largest, program_of, scaled  # noqa: E402
from tests.opinfo.samples import entries, samples_of  # noqa: E402
from tests.walks.sampled import run_module  # noqa: E402


def first(name, elements, layout="contiguous", dtype="float32"):
    return next(scaled(samples_of(entries()[name], dtype), elements, layout))


def row(**more):
    return {"op": "sin", "dtype": "float32", "size": "4 Ki", "layout": "contiguous", "ran": "native", "eager_us": 10.0, "tenon_us": 20.0} | more


@pytest.mark.timeout(300)
def test_a_hundred_rows_have_eagers_values(tmp_path):
    rows_file = tmp_path / "rows.jsonl"
    run = run_module("tests.bench.sweep", "--rows", "100", "--sizes", "4 Ki", "--seconds", "0", "--resume", str(rows_file))
    rows = report.read([rows_file])
    assert run.returncode == 0 and [report.line(r) for r in rows if report.is_wrong(r)] == [], run.stderr[-2000:]
    assert len(rows) == 100 and sum("ran" in r for r in rows) >= 80, [r for r in rows if "ran" not in r]


def test_rows_of_a_file_are_not_run_again(tmp_path, monkeypatch):
    rows_file = tmp_path / "rows.jsonl"
    rows_file.write_text(json.dumps(row()) + "\n" + json.dumps(row(size="4 Mi", failed="took too long")) + "\n")
    monkeypatch.setattr(sys, "argv", ["sweep", "--only", "sin,cos", "--dtypes", "float32", "--layouts", "contiguous", "--resume", str(rows_file)])
    todo = {job.name: [place.size for place in job.places] for job in jobs(arguments())}
    assert todo == {"cos": ["4 Ki", "256 Ki", "4 Mi"], "sin": ["256 Ki"]}
    monkeypatch.setattr(sys, "argv", [*sys.argv, "--again"])
    assert sum(len(job.places) for job in jobs(arguments())) == 6


def test_each_row_is_in_one_shard(monkeypatch):
    def names(shard):
        monkeypatch.setattr(sys, "argv", ["sweep", "--dtypes", "float32,bool", "--shard", shard, "--again"])
        return [(job.name, job.dtype) for job in jobs(arguments())]

    parts = [names(f"{i}/3") for i in (1, 2, 3)]
    assert sorted(sum(parts, [])) == sorted(names("1/1")) and all(len(part) > 100 for part in parts)


@pytest.mark.parametrize("name", ["add", "mm", "sum", "sort", "index_select", "nn.functional.conv2d", "nn.functional.layer_norm", "cumsum"])
@pytest.mark.parametrize("elements", [1 << 12, 1 << 18])
def test_operands_have_the_wanted_number_of_elements(name, elements):
    assert elements / 2 <= largest(first(name, elements)).numel() <= elements * 2


def test_operands_are_laid_as_wanted():
    x = first("add", 1 << 12, "transposed").input
    assert x.mT.is_contiguous() and not x.is_contiguous()
    y = first("add", 1 << 18, "channels last").input
    assert y.is_contiguous(memory_format=torch.channels_last) and not y.is_contiguous()


def test_a_program_names_its_operands():
    program = program_of(torch.add, first("add", 1 << 12))
    assert program.text == "lambda t0, t1: op(t0, t1)"
    assert torch.equal(program.function()(*program.operands), torch.add(*program.operands))


def test_a_row_is_slow_where_three_processes_say_so(monkeypatch):
    assert report.is_slow(row(ratios=[0.5, 0.6, 0.9]))
    assert not report.is_slow(row(ratios=[0.5, 0.6, 0.96])) and not report.is_slow(row(ratios=[0.5, 0.6]))
    monkeypatch.setattr(report, "reasons", lambda: {"sin float32 *": "the polynomial is two terms longer"})
    slow = row(ratios=[0.5, 0.6, 0.9])
    text = report.text([slow, slow | {"op": "cos"}, row(op="tan", ratios=[2.0]), row(op="neg", left="no sample can be scaled")])
    assert "4 rows: 3 timed, 2 slow, 1 of these unexplained, 0 wrong or failed, 1 without a time" in text
    assert "| native | the polynomial is two terms longer |" in text and "| native | unexplained |" in text
    assert f"| float32 | 3 | {(0.9 * 0.9 * 2) ** (1 / 3):.2f} | 2 |" in text
