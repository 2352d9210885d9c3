from __future__ import annotations

from benchmarks.flink.sql import QUERIES
from benchmarks.nexmark.queries import QUERIES as IN_SPARK


def test_each_query_is_one_of_those_that_spark_runs() -> None:
    assert [name for name in IN_SPARK if name in QUERIES] == list(QUERIES)


def test_the_type_has_the_columns_that_a_query_reads_and_ends_with_the_time() -> None:
    assert QUERIES["q11"].type == "ROW<event_type INT, bid_bidder BIGINT, dateTime BIGINT>"
    assert QUERIES["q8"].type == (
        "ROW<event_type INT, person_id BIGINT, person_name STRING, auction_seller BIGINT, dateTime BIGINT>"
    )


def test_a_view_per_kind_of_event() -> None:
    assert QUERIES["q11"].views == (
        "CREATE TEMPORARY VIEW bid AS SELECT bid_bidder AS bidder, ts AS made FROM events WHERE event_type = 2;"
    )
    assert all(query.views.count("CREATE TEMPORARY VIEW") == len(query.read) for query in QUERIES.values())


def test_objects_of_a_topic() -> None:
    assert QUERIES["q8"].type_of_objects == (
        "ROW<event_type INT, person ROW<`id` BIGINT, `name` STRING>, auction ROW<`seller` BIGINT>, "
        "dateTime TIMESTAMP_LTZ(3)>"
    )
    assert QUERIES["q11"].views_of_objects == (
        "CREATE TEMPORARY VIEW bid AS SELECT `bid`.`bidder` AS bidder, ts AS made FROM events WHERE event_type = 2;"
    )


def test_statements_have_no_semicolon_which_would_cut_them() -> None:
    assert not any(";" in query.sql for query in QUERIES.values())
