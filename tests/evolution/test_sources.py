"""Sources of a changed query, and where they continue."""

from __future__ import annotations

from spark_ckpt.evolution.choices import NO_CHOICES, Choices, SourceChoice
from spark_ckpt.evolution.sources import SourceMapping, map_sources
from tests.support.meanings import meaning

OLD = meaning(sources=("json path=/a", "kafka subscribe=t"))
OFFSETS = ['{"logOffset":3}', '{"t":{"0":7}}']


def mapped(*sources: str, **choices: SourceChoice) -> SourceMapping:
    told = {int(number.removeprefix("s")): choice for number, choice in choices.items()}
    return map_sources(OFFSETS, OLD, meaning(sources=sources), Choices(sources=told) if told else NO_CHOICES)


def test_unchanged_sources_stay() -> None:
    found = mapped("json path=/a", "kafka subscribe=t")
    assert found.is_identity
    assert found.directories == (0, 1)


def test_sources_are_found_again_in_another_order() -> None:
    found = mapped("kafka subscribe=t", "json path=/a")
    assert [source.from_source for source in found.sources] == [1, 0]
    assert [source.position for source in found.sources] == OFFSETS[::-1]
    assert found.directories == (1, 0)
    assert not found.is_identity


def test_a_new_source_is_asked_for_its_position() -> None:
    (problem,) = mapped("json path=/a", "json path=/b").problems
    assert "source 1 (json path=/b) is none of the earlier query" in problem
    assert "--source 1=K to continue where source K of the earlier query stands: 1 (kafka subscribe=t)" in problem
    begun = mapped("json path=/a", "json path=/b", s1=None)
    assert begun.problems == ()
    assert begun.sources[1].position is None
    assert begun.directories == (0, None)
    moved = mapped("json path=/a", "kafka subscribe=u", s1='{"u":{"0":1}}')
    assert moved.sources[1].position == '{"u":{"0":1}}'
    taken = mapped("json path=/moved", "kafka subscribe=t", s0=0)
    assert (taken.problems, taken.sources[0].position, taken.is_identity) == ((), OFFSETS[0], True)


def test_wrong_answers() -> None:
    assert "has no source 5" in mapped("json path=/a", "kafka subscribe=t", s5=None).problems[0]
    assert "had no source 9" in mapped("json path=/a", "kafka subscribe=t", s0=9).problems[0]
    assert "must be one line" in mapped("json path=/a", "kafka subscribe=t", s1="a\nb").problems[0]


def test_a_source_that_is_used_twice_has_one_directory() -> None:
    from dataclasses import replace

    twice = meaning(sources=("json path=/a", "json path=/a"))
    twice = replace(twice, sources=(twice.sources[0], replace(twice.sources[1], directory=0)))
    found = map_sources(OFFSETS, OLD, twice, Choices(sources={1: 0}))
    assert found.directories == (0,)
