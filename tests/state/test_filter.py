from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal

import pyarrow as pa
import pytest

from spark_ckpt.state.errors import FilterError
from spark_ckpt.state.filter import parse_filter

TABLE = pa.table(
    {
        "key": pa.array([{"user": name, "a b": len(name)} for name in ("a", "bb", "it's", "dd")]),
        "n": [1, 2, -3, None],
        "price": pa.array([Decimal("1.50"), Decimal("2.50"), None, None], pa.decimal128(9, 2)),
        "at": pa.array(
            [datetime(2024, 1, day, tzinfo=timezone.utc) for day in (1, 2, 3, 4)], pa.timestamp("us", "UTC")
        ),
        "local": pa.array([datetime(2024, 1, day) for day in (1, 2, 3, 4)], pa.timestamp("us")),
        "day": [date(2024, 1, day) for day in (1, 2, 3, 4)],
        "flag": [True, False, None, True],
        "pause": pa.array([0, 1, 2, 3], pa.duration("us")),
        "code": [b"a", b"b", b"c", b"d"],
        "a`b`": [1, 2, 3, 4],
    }
)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("key.user = 'a'", [0]),
        ("key.user = 'it''s'", [2]),
        ("key.`a b` >= 2", [1, 2, 3]),
        ("`a``b``` > 3", [3]),
        ("n < 2", [0, 2]),
        ("n <= -3", [2]),
        ("n != 1", [1, 2]),
        ("n <> 1", [1, 2]),
        ("n > 1 or n = 1", [0, 1]),
        ("n = 1 or n = 2 and flag = true", [0]),
        ("(n = 1 or n = 2) and flag = false", [1]),
        ("not n = 1 AND n is not null", [1, 2]),
        ("n is null", [3]),
        ("key is null", []),
        ("n in (1, -3)", [0, 2]),
        ("key.user not in ('a', 'bb')", [2, 3]),
        ("price = 1.5", [0]),
        ("at > '2024-01-02'", [2, 3]),
        ("at >= '2024-01-02T01:00:00+01:00'", [1, 2, 3]),
        ("local = '2024-01-03 00:00:00'", [2]),
        ("day = '2024-01-04'", [3]),
        ("pause > 1", [2, 3]),
        ("code = 'c'", [2]),
        ("key.user == 'a' or n == -3", [0, 2]),
        ("key.user like 'a'", [0]),
        ("key.user LIKE '%s'", [2]),
        ("key.user like '_'", [0]),
        ("key.user not like '__'", [0, 2]),
        ("key.user like 'it''%'", [2]),
    ],
)
def test_conditions(text: str, rows: list[int]) -> None:
    numbered = TABLE.append_column("row", pa.array(range(TABLE.num_rows)))
    assert numbered.filter(parse_filter(text, TABLE.schema))["row"].to_pylist() == rows


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        ("", [""]),
        ("%", ["", "a", "100%", "a_b", "a.b", "a\\b", "x\ny", "\u00fc"]),
        ("_", ["a", "\u00fc"]),
        ("a_b", ["a_b", "a.b", "a\\b"]),
        (r"a\_b", ["a_b"]),
        ("a.b", ["a.b"]),
        (r"%\%", ["100%"]),
        (r"a\\b", ["a\\b"]),
        ("x%y", ["x\ny"]),
        ("x_y", ["x\ny"]),
        ("x", []),
        ("A", []),
        ("(a|b)*", []),
    ],
)
def test_patterns_are_those_of_sql(pattern: str, matches: list[str]) -> None:
    table = pa.table({"t": ["", "a", "100%", "a_b", "a.b", "a\\b", "x\ny", "\u00fc", None]})
    condition = parse_filter(f"t like '{pattern}'", table.schema)
    assert table.filter(condition)["t"].to_pylist() == matches
    others = table.filter(parse_filter(f"t not like '{pattern}'", table.schema))["t"].to_pylist()
    assert sorted(matches + others) == sorted(table["t"].drop_null().to_pylist())


@pytest.mark.parametrize(
    ("text", "position", "reason"),
    [
        ("", 0, "a name is missing; the columns are key, n"),
        ("m = 1", 0, "'m' is unknown; the columns are key, n"),
        ("key.name = 1", 4, "'name' is unknown; the fields of key are user, a b"),
        ("n.x = 1", 0, "n has no fields: its type is int64"),
        ("key = 'a'", 0, "can only be compared with null"),
        ("n", 1, "expected .*, in, like or is null"),
        ("n not = 1", 6, "expected .*, in, like or is null"),
        ("n =", 3, "expected a number, a string in single quotes"),
        ("n = x", 4, "expected a number, a string in single quotes"),
        ("n = 'x'", 4, "'x' is not of type int64"),
        ("price = 1.2.3", 8, "1.2.3 is not of type decimal128"),
        ("at = 'soon'", 5, "'soon' is not of type timestamp"),
        ("n = 1 n = 2", 6, "expected and, or, or the end"),
        ("(n = 1", 6, "expected \\)"),
        ("n in (1", 7, "expected \\)"),
        ("n is 1", 5, "expected null"),
        ("n like 'x'", 0, "like compares texts: the type of the column is int64"),
        ("key.user like 1", 14, "expected a pattern in single quotes"),
        (r"key.user like 'a\b'", 14, "after .* a pattern has %, _ or .*, not 'b'"),
        ("key.user like 'a\\'", 14, "not ''"),
        ("n === 1", 4, "expected a number"),
        ("n = 1;", 5, "unexpected character"),
        ("key.user = 'a", 10, "unexpected character"),
    ],
)
def test_what_is_no_condition(text: str, position: int, reason: str) -> None:
    with pytest.raises(FilterError, match=reason) as caught:
        parse_filter(text, TABLE.schema)
    assert (caught.value.text, caught.value.position) == (text, position)
