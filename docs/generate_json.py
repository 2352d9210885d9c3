"""Writes docs/json.md from the schema in `spark_ckpt.cli`. A test fails while the page is not current."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parent / "json.md"

INTRODUCTION = """\
# JSON of the commands

Written by `make docs` from `spark_ckpt/cli/schema/format-1.json`.

With `--json` a command prints one object on standard output. If it fails, it prints one on standard error instead (an
[error](#errors)) and ends with status 1; `inspect --streams` and `gc` may print a result and end with status 1 all the
same, for what they could not read or delete, and `verify` with status 3 for damage. Other statuses stand in a command's
`--help`. Wrong usage is text on standard error and status 2.

## What stays as it is

Every object begins with `format`, the number of this description: 1. While it is 1

- no field is renamed or dropped, and none changes its type, its meaning, or whether it can be null;
- there may be new fields, commands and classes of errors, and, when Flink has new ones, new kinds of handles (values of
  `type`) and new values of enumerations: pass over what you do not know, or say so;
- the order of fields, white space, and text for a person (messages, reasons, warnings, roles) may change at any time.

Numbers are integers of up to 64 bits; a reader that takes them for floating-point numbers loses digits beyond 2^53.
Bytes are base64. Text is as Java has it: a lone surrogate is possible, as an escape such as `\\ud83d`. A field is
always there, null if there is nothing to say, unless it is marked as one that may be missing.

The schema can be used as it is:

```python
import json
from importlib.resources import files
from jsonschema import Draft202012Validator

schema = json.loads((files("spark_ckpt.cli") / "schema" / "format-1.json").read_text())
Draft202012Validator({**schema, "$ref": "#/$defs/inspect"}).validate(output)
```
"""

ERRORS = """\
## Errors

What a command that fails prints on standard error, with `format` before it, and what `inspect --streams` says of a
stream that it cannot read. `error` is the name of the class, and `message` a text for a person that says what is wrong
and what to do. The other fields depend on the class:
"""


def json_page() -> str:
    """The whole page."""
    schema = json.loads((files("spark_ckpt.cli") / "schema" / "format-1.json").read_text(encoding="utf-8"))
    definitions: dict[str, Any] = schema["$defs"]
    errors = {name: definition for name, definition in definitions.items() if "allOf" in definition}
    parts = [INTRODUCTION, "## Objects\n"]
    for name, definition in definitions.items():
        if name not in errors and name != "error":
            parts.append("\n".join([f"### `{name}`", "", definition["description"], "", *_body(definition), ""]))
    parts.append(ERRORS)
    parts.append(
        "\n".join(["| error | meaning | fields |", "|---|---|---|", *map(_error, errors, errors.values()), ""])
    )
    return "\n".join(parts)


def _body(definition: dict[str, Any]) -> Iterator[str]:
    if "oneOf" in definition:
        yield f"One of {_kind(definition)}."
        return
    yield from ("| field | type | meaning |", "|---|---|---|")
    for field, kind in definition["properties"].items():
        missing = "" if field in definition["required"] else " May be missing."
        yield f"| `{field}` | {_kind(kind)} | {kind['description']}{missing} |"


def _error(name: str, definition: dict[str, Any]) -> str:
    fields = [
        f"`{field}` ({_kind(kind)}): {kind['description']}"
        for field, kind in definition["properties"].items()
        if field != "error"
    ]
    return f"| `{name}` | {definition['description']} | {'<br>'.join(fields)} |"


def _kind(kind: dict[str, Any]) -> str:
    """What a value can be."""
    if "$ref" in kind:
        name = kind["$ref"].rpartition("/")[2]
        return f"[{name}](#{'errors' if name == 'error' else name.lower()})"
    if "oneOf" in kind:
        return ", ".join(_kind(one) for one in sorted(kind["oneOf"], key=lambda one: one.get("type") == "null"))
    if "const" in kind:
        return f"`{json.dumps(kind['const'])}`"
    if "enum" in kind:
        return ", ".join(f"`{json.dumps(value)}`" for value in kind["enum"])
    if "items" in kind:
        return f"list of {_kind(kind['items'])}"
    if "additionalProperties" in kind:
        return f"object with values {_kind(kind['additionalProperties'])}"
    types = kind.get("type", "any")
    return types if isinstance(types, str) else ", ".join(types)


if __name__ == "__main__":
    PAGE.write_text(json_page(), encoding="utf-8")
