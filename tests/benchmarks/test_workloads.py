from __future__ import annotations

import pytest

from benchmarks.stores.figures import MEASURES
from benchmarks.stores.providers import PROVIDERS
from benchmarks.stores.workloads import BEST_BUILT_IN, GROWTH, LOAD_ROWS, PARTITIONS, TARGETS, WORKLOADS, Workload


def test_a_large_state_is_loaded_in_parts() -> None:
    loads = Workload("w", "w", keys=2_500_001).loads
    assert sum(loads) == 2_500_001
    assert len(loads) == 3
    assert max(loads) <= LOAD_ROWS


def test_memory_is_compared_with_that_of_a_hundredth() -> None:
    loads = Workload("w", "w", kind="memory", keys=1_000_000).loads
    assert (loads[0], sum(loads)) == (10_000, 1_000_000)


def test_scales_keys_and_changes_alike() -> None:
    small = WORKLOADS["count-1"].scaled(0.01, None)
    assert (small.keys, small.changed, small.batches) == (10_000, 100, 20)
    half = WORKLOADS["count-50"].scaled(0.01, None)
    assert (half.keys, half.changed) == (10_000, 5_000)


def test_measures_as_many_batches_as_are_asked_for() -> None:
    small = WORKLOADS["count-1"].scaled(1, 3)
    assert (small.batches, small.warmups) == (3, 3)
    assert WORKLOADS["coordinator"].scaled(0.01, 7).batches == 7


@pytest.mark.parametrize("name", WORKLOADS)
def test_is_sound_at_the_smallest_scale(name: str) -> None:
    small = WORKLOADS[name].scaled(1e-9, 1)
    assert 0 < small.changed <= small.keys
    assert all(load > 0 for load in small.loads)


def test_refuses_more_changes_than_keys() -> None:
    with pytest.raises(ValueError, match="w: 11 changed rows of 10 keys"):
        Workload("w", "w", keys=10, changed=11)


def test_targets_name_what_there_is() -> None:
    for target in TARGETS:
        assert target.workload in WORKLOADS
        assert target.measure in MEASURES
        assert target.against in {None, BEST_BUILT_IN, *WORKLOADS}


@pytest.mark.parametrize(("points", "field", "unit"), [(GROWTH, "keys", 1_000_000), (PARTITIONS, "partitions", 1)])
def test_rows_of_workloads_differ_in_one_thing(points: dict[str, float], field: str, unit: int) -> None:
    found = {name: vars(WORKLOADS[name]) for name in points}
    assert {name: values[field] / unit for name, values in found.items()} == points
    rest = [{k: v for k, v in values.items() if k not in {"name", "title", field}} for values in found.values()]
    assert all(values == rest[0] for values in rest)


def test_sparks_own_providers_are_the_rivals() -> None:
    assert {name for name, provider in PROVIDERS.items() if provider.built_in} == {
        "hdfs",
        "rocksdb",
        "rocksdb-changelog",
        "rocksdb-ids",
    }


@pytest.mark.parametrize("name", ["spill-uniform", "spill-zipf", "spill-window"])
def test_a_state_beyond_memory_has_twice_the_limit_as_plain_bytes(name: str) -> None:
    for workload in (WORKLOADS[name], WORKLOADS[name].scaled(0.1, None)):
        assert workload.memory_mb is not None
        assert workload.keys * 56 >= 2 * workload.memory_mb * (1 << 20)


def test_every_provider_of_a_state_beyond_memory_has_a_limit() -> None:
    for workload in WORKLOADS.values():
        if workload.memory_mb is not None:
            for name in workload.providers:
                provider = PROVIDERS[name]
                limited = set(provider.conf(512).items()) - set(provider.conf().items())
                assert any("512" in value for _, value in limited), name
