"""Conditions on rows, as `key.user = 'a' and value.count > 3`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from spark_ckpt.state.errors import FilterError

_TOKEN = re.compile(
    r"\s*(?:(?P<name>`(?:[^`]|``)+`|[A-Za-z_$][\w$]*)|(?P<text>'(?:[^']|'')*')|(?P<number>-?\d[\w.+-]*)"
    r"|(?P<sign><=|>=|!=|<>|==|[=<>(),.])|(?P<end>$))"
)
_ANY, _ONE, _ESCAPE = "%", "_", "\\"
_COMPARISONS = {
    "=": pc.Expression.__eq__,
    "==": pc.Expression.__eq__,
    "!=": pc.Expression.__ne__,
    "<>": pc.Expression.__ne__,
    "<": pc.Expression.__lt__,
    "<=": pc.Expression.__le__,
    ">": pc.Expression.__gt__,
    ">=": pc.Expression.__ge__,
}


class _Token(NamedTuple):
    kind: str
    text: str
    at: int

    @property
    def word(self) -> str:
        """The lower-case text of a name; empty for other tokens."""
        return self.text.lower() if self.kind == "name" else ""


def parse_filter(text: str, schema: pa.Schema) -> pc.Expression:
    """The condition in a text: comparisons of columns with values, `is null`, `in` and `like`, joined by `and`, `or`,
    `not`.

    A struct field is written `key.user`; a name with other characters needs backquotes, and two
    for a backquote in it. A value is a number, a string
    in single quotes, `true` or `false`, and takes the type of the column, such as a time or a decimal.

    Args:
        text: the condition.
        schema: schema of the rows.

    Raises:
        FilterError: syntax error or unknown column.
    """
    parser = _Parser(text, schema)
    condition = parser.either()
    parser.expect("end", "")
    return condition


class _Parser:
    """Recursive descent, a method for each level of precedence."""

    def __init__(self, text: str, schema: pa.Schema) -> None:
        self._text = text
        self._schema = schema
        self._tokens = list(self._split())
        self._next = 0

    def _split(self) -> Iterator[_Token]:
        at = 0
        while True:
            match = _TOKEN.match(self._text, at)
            if match is None or match.lastgroup is None:
                raise FilterError(self._text, at, "unexpected character")
            yield _Token(match.lastgroup, match[match.lastgroup], match.start(match.lastgroup))
            if match.lastgroup == "end":
                return
            at = match.end()

    def either(self) -> pc.Expression:
        """`a or b`."""
        condition = self._both()
        while self._take_word("or"):
            condition = condition | self._both()
        return condition

    def _both(self) -> pc.Expression:
        condition = self._one()
        while self._take_word("and"):
            condition = condition & self._one()
        return condition

    def _one(self) -> pc.Expression:
        if self._take_word("not"):
            return ~self._one()
        if self._take_sign("("):
            condition = self.either()
            self.expect("sign", ")")
            return condition
        return self._comparison()

    def _comparison(self) -> pc.Expression:
        start = self._peek().at
        column, kind = self._column()
        if self._take_word("is"):
            is_not = self._take_word("not")
            self.expect("name", "null")
            return ~column.is_null() if is_not else column.is_null()
        if pa.types.is_nested(kind):
            raise FilterError(self._text, start, f"{kind} can only be compared with null: select one of its fields")
        is_not = self._take_word("not")
        if self._take_word("in"):
            condition = column.isin(pa.array(self._values(kind), kind))
            return ~condition if is_not else condition
        if self._take_word("like"):
            condition = self._like(column, kind, start)
            return ~condition if is_not else condition
        token = self._take()
        if is_not or token.kind != "sign" or token.text not in _COMPARISONS:
            raise FilterError(self._text, token.at, f"expected {', '.join(_COMPARISONS)}, in, like or is null")
        return _COMPARISONS[token.text](column, self._value(kind))

    def _like(self, column: pc.Expression, kind: pa.DataType, start: int) -> pc.Expression:
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
            raise FilterError(self._text, start, f"like compares texts: the type of the column is {kind}")
        token = self._take()
        if token.kind != "text":
            raise FilterError(self._text, token.at, "expected a pattern in single quotes")
        try:
            pattern = _regex(_unquoted(token.text))
        except ValueError as e:
            raise FilterError(self._text, token.at, str(e)) from e
        return pc.match_substring_regex(column, pattern)

    def _column(self) -> tuple[pc.Expression, pa.DataType]:
        path: list[str] = []
        fields: pa.Schema | pa.DataType = self._schema
        while True:
            token = self._take()
            name = _name(token.text)
            if token.kind != "name" or name not in fields.names:
                there = ", ".join(fields.names)
                what = f"fields of {'.'.join(path)}" if path else "columns"
                said = f"'{name}' is unknown" if token.text else "a name is missing"
                raise FilterError(self._text, token.at, f"{said}; the {what} are {there}")
            path.append(name)
            kind = fields.field(name).type
            if not self._take_sign("."):
                return pc.field(*path), kind
            if not pa.types.is_struct(kind):
                raise FilterError(self._text, token.at, f"{'.'.join(path)} has no fields: its type is {kind}")
            fields = kind

    def _values(self, kind: pa.DataType) -> list[pa.Scalar]:
        self.expect("sign", "(")
        values = [self._value(kind)]
        while self._take_sign(","):
            values.append(self._value(kind))
        self.expect("sign", ")")
        return values

    def _value(self, kind: pa.DataType) -> pa.Scalar:
        token = self._take()
        if token.kind not in ("text", "number") and token.word not in ("true", "false"):
            raise FilterError(self._text, token.at, "expected a number, a string in single quotes, true or false")
        text = _unquoted(token.text) if token.kind == "text" else token.text
        try:
            return _scalar(text, kind)
        except (pa.ArrowException, InvalidOperation, ValueError) as e:
            raise FilterError(self._text, token.at, f"{token.text} is not of type {kind}") from e

    def expect(self, kind: str, text: str) -> None:
        """Takes the next token, which must be this one."""
        token = self._take()
        if token.kind != kind or token.text.lower() != text:
            raise FilterError(self._text, token.at, f"expected {text or 'and, or, or the end'}")

    def _peek(self) -> _Token:
        return self._tokens[self._next]

    def _take(self) -> _Token:
        token = self._peek()
        self._next = min(self._next + 1, len(self._tokens) - 1)
        return token

    def _take_word(self, word: str) -> bool:
        result = self._peek().word == word
        self._next += result
        return result

    def _take_sign(self, sign: str) -> bool:
        token = self._peek()
        result = (token.kind, token.text) == ("sign", sign)
        self._next += result
        return result


def _name(text: str) -> str:
    return text[1:-1].replace("``", "`") if text.startswith("`") else text


def _unquoted(text: str) -> str:
    return text[1:-1].replace("''", "'")


def _regex(pattern: str) -> str:
    """The regular expression of a pattern of SQL's LIKE, for whole texts.

    Raises:
        ValueError: an escape character is followed by none of `%`, `_` and itself, as in Spark.
    """
    parts, characters = [], iter(pattern)
    for character in characters:
        if character == _ESCAPE:
            escaped = next(characters, "")
            if escaped not in (_ANY, _ONE, _ESCAPE):
                raise ValueError(f"after {_ESCAPE} a pattern has {_ANY}, {_ONE} or {_ESCAPE}, not {escaped!r}")
            parts.append(re.escape(escaped))
        else:
            parts.append({_ANY: ".*", _ONE: "."}.get(character) or re.escape(character))
    return rf"(?s)\A{''.join(parts)}\z"


def _scalar(text: str, kind: pa.DataType) -> pa.Scalar:
    """The value of a text in a type; a time without a zone is in UTC."""
    if pa.types.is_decimal(kind):
        return pa.scalar(Decimal(text), kind)
    if pa.types.is_duration(kind):
        return pa.scalar(int(text), kind)
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        has_zone = re.search(r"(Z|[+-]\d\d:?\d\d)$", text)
        return pa.scalar(text).cast(kind if has_zone else pa.timestamp("us")).cast(kind)
    return pa.scalar(text).cast(kind)
