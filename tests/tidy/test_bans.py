"""Sources have no construct for which the project has something better."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tidy.bans import PYTHON, SCALA, Ban
from tests.tidy.planted import made
from tests.tidy.sources import REPOSITORY, files, references, scala_code

BANS = (*PYTHON, *SCALA)

each_ban = pytest.mark.parametrize("ban", BANS, ids=[ban.construct for ban in BANS])


def planted(root: Path, ban: Ban, text: str) -> Path:
    """Repository with one source that a ban looks at."""
    return made(root, {f"{ban.folders[-1]}/package/planted{ban.suffix}": text})


@each_ban
def test_no_source_has_a_banned_construct(ban: Ban) -> None:
    assert all(files(REPOSITORY, folder, ban.suffix) for folder in ban.folders)
    violations = ban.violations(REPOSITORY)
    assert not violations, "\n".join(violations)


@each_ban
def test_a_planted_construct_is_found_once(ban: Ban, tmp_path: Path) -> None:
    (violation,) = ban.violations(planted(tmp_path, ban, ban.planted))
    last = len(ban.planted.splitlines())
    assert violation == f"{ban.folders[-1]}/package/planted{ban.suffix}:{last}: {ban.construct}; use {ban.instead}"


@each_ban
def test_each_allowed_file_still_needs_it(ban: Ban) -> None:
    assert ban.found(REPOSITORY).keys() >= ban.allowed


@pytest.mark.parametrize(
    "text",
    [
        "console.print('done')",
        "'''print(1)'''  # print(2), pickle, time.sleep(1)",
        "from spark_ckpt.clock import sleep\nsleep(1)",
        "clock.sleep(clock.monotonic())",
        "generator = random.Random(7)\ngenerator.shuffle(order)",
        "subprocess.run(['ls'], shell=False)",
        "with open(path, 'xb') as stream:\n    pass",
        "path.read_text(encoding='utf-8')",
        "assert value is None or isinstance(value, str)",
        "value = yaml.safe_load(text)",
    ],
)
def test_what_only_looks_like_a_construct_is_not_found(text: str, tmp_path: Path) -> None:
    for number, ban in enumerate(PYTHON):
        assert ban.violations(planted(tmp_path / str(number), ban, text)) == []


@pytest.mark.parametrize(
    "text",
    [
        '// println("a"), return',
        'log("return; Thread.sleep(1); ???")',
        '/*\n * @return a new Thread(name)\n */\nval quote = \'"\'\nval text = """println("a") \n return"""',
        "val thread = OwnThreads.daemon(name)(body)",
        "val text = new String(key.get(i), UTF_8).getBytes(UTF_8)",
        "case e: Throwable if !OwnThreads.isOfBrokenJvm(e) => throw e",
        'val name = f"$epoch%020d-${sum}%016x"',
    ],
)
def test_what_only_looks_like_a_construct_in_scala_is_not_found(text: str, tmp_path: Path) -> None:
    for number, ban in enumerate(SCALA):
        assert ban.violations(planted(tmp_path / str(number), ban, text)) == []


def test_a_name_is_known_however_it_is_imported(tmp_path: Path) -> None:
    text = "from time import sleep as pause\nimport os.path, time as clock\npause(1)\nclock.sleep(1)\nos.sleep(1)"
    source = tmp_path / "source.py"
    source.write_text(text, encoding="utf-8")
    assert [line for name, line in references(source) if name == "time.sleep"] == [1, 3, 4]


def test_scala_without_comments_and_strings_keeps_its_lines() -> None:
    text = 'a // b "c"\n/* d\n"e" */ f("g\\"h") + """i\nj"""'
    code = scala_code(text)
    assert [len(line) for line in code.split("\n")] == [len(line) for line in text.split("\n")]
    assert code.replace(" ", "") == 'a\n\nf("")+"""\n"""'
