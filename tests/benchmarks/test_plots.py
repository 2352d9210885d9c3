from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from benchmarks.stores import plots
from benchmarks.stores.providers import PROVIDERS
from benchmarks.stores.summary import Summary
from benchmarks.stores.workloads import TARGETS
from tests.benchmarks.records import record

PNG = b"\x89PNG\r\n\x1a\n"


def everything() -> Summary:
    workloads = ("count-1", "join", "keys-4m", "keys-8m", "partitions-64", "partitions-200", "s3-8-30ms")
    records = [
        record(name, provider, batch_ms=[10.0, 20.0, 30.0], state_ms=[5.0, 6.0], requests=[100.0])
        for name in workloads
        for provider in PROVIDERS
    ]
    records += [record("restart", provider, restart_ms=[500.0]) for provider in PROVIDERS]
    records += [record(name, "ckpt", written_ratio=[3.5]) for name in ("bytes-1m", "bytes-8m")]
    records += [record("memory", provider, memory_bytes=[-3.0, 90.0]) for provider in PROVIDERS]
    return Summary([*records, record("coordinator", "ckpt", coordinator_ms=[30.0])])


def test_draws_a_picture_of_all_that_there_is(tmp_path: Path) -> None:
    drawn = plots.draw(everything(), tmp_path)
    assert [path.stem for path in drawn] == [
        *("targets", "batches", "state", "restart", "memory", "requests", "coordinator", "bytes", "growth"),
        "partitions",
    ]
    assert all(path.read_bytes().startswith(PNG) for path in drawn)
    assert plt.get_fignums() == []


def test_draws_nothing_of_nothing(tmp_path: Path) -> None:
    assert plots.draw(Summary([]), tmp_path) == []


def test_a_line_needs_two_points(tmp_path: Path) -> None:
    one = [record("count-1", "ckpt", batch_ms=[1.0], state_ms=[1.0])]
    assert "growth" not in [path.stem for path in plots.draw(Summary(one), tmp_path)]
    two = [*one, record("keys-8m", "ckpt", batch_ms=[1.0], state_ms=[1.0])]
    assert "growth" in [path.stem for path in plots.draw(Summary(two), tmp_path)]


def test_bytes_are_a_line_over_the_keys_with_the_target(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    figures: list[Figure] = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, path, **_: figures.append(figure))
    records = [record(name, "ckpt", written_ratio=[ratio]) for name, ratio in (("bytes-1m", 3.0), ("bytes-32m", 7.0))]
    plots.draw(Summary(records), tmp_path)
    ours, target = figures[-1].axes[0].lines
    assert np.asarray(ours.get_xdata()).tolist() == np.asarray(target.get_xdata()).tolist() == [1, 32]
    assert np.asarray(ours.get_ydata()).tolist() == [3, 7]
    assert np.asarray(target.get_ydata()).tolist() == [5, 8]


def test_a_rescale_is_a_line_for_each_provider_over_the_keys() -> None:
    points = {"count-1": 10_000.0, "keys-4m": 100_000.0}
    records = [
        record(name, provider, rescale_ms=[took], written_bytes=[took * 1000])
        for name in points
        for provider, took in (("ckpt", 80.0), ("rocksdb", 9000.0))
    ]
    figure = plots.rescaling(Summary(records), points, "more partitions")
    for axes, factor in zip(figure.axes, (1, 1000), strict=True):
        assert [np.asarray(line.get_ydata()).tolist() for line in axes.lines] == [
            [80 * factor] * 2,
            [9000 * factor] * 2,
        ]
        assert [np.asarray(line.get_xdata()).tolist() for line in axes.lines] == [[10_000, 100_000]] * 2
        assert [text.get_text().strip() for text in axes.texts] == ["spark-ckpt", "RocksDB"]
        assert axes.get_yscale() == "log"
    plt.close(figure)


def test_every_provider_has_a_colour() -> None:
    assert plots.COLOURS.keys() == PROVIDERS.keys()
    assert len(set(plots.COLOURS.values())) == len(PROVIDERS)


def test_targets_show_ratio_limit_and_rival(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figures: list[Figure] = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, path, **_: figures.append(figure))
    plots.draw(
        Summary([record("count-1", "ckpt", state_ms=[45.0]), record("count-1", "hdfs", state_ms=[100.0])]), tmp_path
    )
    (axes,) = figures[0].axes
    assert [bar.get_width() for bar in axes.patches if isinstance(bar, Rectangle)] == [0.45]
    (limit,) = (target.limit for target in TARGETS if (target.workload, target.measure) == ("count-1", "state_ms"))
    told = [text.get_text().strip() for text in axes.texts]
    assert told == [f"0.45 of HDFSBacked, the best built-in; at most {limit:g}"]
    assert [limit, limit] in [np.asarray(line.get_xdata()).tolist() for line in axes.lines]
    (panel,) = figures[1].axes
    (at,) = (text.get_position()[0] for text in panel.texts if text.get_text().strip() == "our target")
    assert at == pytest.approx(100 * limit)
