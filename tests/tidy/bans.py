"""Constructs that the sources do without, and what they have instead.

`SourceRulesSuite` has the rules on threads, packages and licences of the shim.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.tidy.sources import PYTHON_FOLDERS, SCALA_FOLDERS, SHIM, files, references, scala_code, text_of, tree_of

LIBRARY = ("spark_ckpt",)


@dataclass(frozen=True)
class Ban:
    """A construct that sources may not have.

    Args:
        construct: what the construct is called; unique.
        instead: what a source has in its place.
        lines: finds the construct in a source: the numbers of its lines.
        planted: source with one violation, in its last line.
        folders: where it is banned.
        suffix: of the files it is looked for in.
        allowed: files that may have it.
    """

    construct: str
    instead: str
    lines: Callable[[Path], Iterator[int]]
    planted: str
    folders: tuple[str, ...] = LIBRARY
    suffix: str = ".py"
    allowed: frozenset[str] = frozenset()

    def found(self, root: Path) -> dict[str, list[int]]:
        """Lines with the construct by file, in allowed files too."""
        found = {}
        for folder in self.folders:
            for path in files(root, folder, self.suffix):
                if lines := sorted(set(self.lines(path))):
                    found[path.relative_to(root).as_posix()] = lines
        return found

    def violations(self, root: Path) -> list[str]:
        """Messages, one for each line with the construct where it is not allowed."""
        return [
            f"{name}:{line}: {self.construct}; use {self.instead}"
            for name, lines in self.found(root).items()
            if name not in self.allowed
            for line in lines
        ]


def names(*banned: str) -> Callable[[Path], Iterator[int]]:
    """Finds uses and imports of names, and of everything below them."""
    words = [set(name.split(".")) for name in banned]

    def lines(path: Path) -> Iterator[int]:
        text = text_of(path)
        if any(all(part in text for part in name) for name in words):
            for name, line in references(path):
                if any(name == each or name.startswith(f"{each}.") for each in banned):
                    yield line

    return lines


def nodes(kind: type[ast.AST], is_banned: Callable[[ast.AST], bool], word: str) -> Callable[[Path], Iterator[int]]:
    """Finds nodes of syntax trees, in files that contain a word."""

    def lines(path: Path) -> Iterator[int]:
        if word in text_of(path):
            for node in ast.walk(tree_of(path)):
                if isinstance(node, kind) and is_banned(node):
                    yield getattr(node, "lineno", 0)

    return lines


def scala(pattern: str, *, in_strings: bool = False) -> Callable[[Path], Iterator[int]]:
    """Finds a pattern in Scala, outside of comments and strings, or also in them."""
    compiled = re.compile(pattern)

    def lines(path: Path) -> Iterator[int]:
        text = text_of(path)
        if compiled.search(text):
            code = text if in_strings else scala_code(text)
            for found in compiled.finditer(code):
                yield code.count("\n", 0, found.start()) + 1

    return lines


def _narrows(test: ast.expr) -> bool:
    """True for what tells a type checker a type: `is None`, `is not None`, `isinstance`."""
    if isinstance(test, ast.BoolOp):
        return all(_narrows(value) for value in test.values)
    if isinstance(test, ast.Compare):
        return all(isinstance(operator, (ast.Is, ast.IsNot)) for operator in test.ops)
    return isinstance(test, ast.Call) and isinstance(test.func, ast.Name) and test.func.id == "isinstance"


def _is_check(node: ast.AST) -> bool:
    return isinstance(node, ast.Assert) and not _narrows(node.test)


def _has_shell(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and any(
        keyword.arg == "shell" and isinstance(keyword.value, ast.Constant) and keyword.value.value is True
        for keyword in node.keywords
    )


def _lacks_encoding(node: ast.AST) -> bool:
    """True for text of a file that is read or written in the encoding of the machine."""
    if not isinstance(node, ast.Call) or any(keyword.arg == "encoding" for keyword in node.keywords):
        return False
    if isinstance(node.func, ast.Attribute):
        return node.func.attr in ("read_text", "write_text")
    if not isinstance(node.func, ast.Name) or node.func.id != "open":
        return False
    modes = [*node.args[1:2], *(keyword.value for keyword in node.keywords if keyword.arg == "mode")]
    return not any(isinstance(mode, ast.Constant) and "b" in str(mode.value) for mode in modes)


PYTHON = (
    Ban(
        "output by print",
        "`spark_ckpt.cli.output` in commands, a logger elsewhere",
        names("print"),
        "print('done')",
    ),
    Ban(
        "sleep",
        "`Clock.sleep` (spark_ckpt/clock.py), which simulations replace",
        names("time.sleep"),
        "import time as t\nt.sleep(1)",
        allowed=frozenset({"spark_ckpt/clock.py"}),
    ),
    Ban(
        "time of the machine",
        "`Clock.now_ms` and `Clock.monotonic` (spark_ckpt/clock.py), which simulations replace; `time.perf_counter` "
        "for a duration that nothing decides by",
        names("time.time", "time.time_ns", "time.monotonic", "datetime.datetime.now", "datetime.date.today"),
        "import time\nstarted = time.time()",
        # The local storage compares the times that its own disk gives to files.
        allowed=frozenset({"spark_ckpt/clock.py", "spark_ckpt/storage/local.py"}),
    ),
    Ban(
        "times without a time zone",
        "`datetime.now(timezone.utc)`, and `datetime.fromtimestamp(seconds, timezone.utc)`",
        names("datetime.datetime.utcnow", "datetime.datetime.utcfromtimestamp"),
        "from datetime import datetime\nnow = datetime.utcnow()",
        PYTHON_FOLDERS,
    ),
    Ban(
        "Python's own serialization",
        "JSON, or a format of docs/protocol.md: what reads pickles runs them",
        names("pickle", "marshal", "shelve"),
        "from pickle import loads",
        PYTHON_FOLDERS,
        # A sink on another process's disk, which only the test that wrote it reads.
        allowed=frozenset({"tests/support/sinks.py"}),
    ),
    Ban("code made at run time", "a function or a table of functions", names("eval", "exec"), "value = eval('1')"),
    Ban(
        "a command line for a shell",
        "`subprocess` with a list of arguments",
        names("os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput"),
        "import os\nos.system('ls')",
        PYTHON_FOLDERS,
    ),
    Ban(
        "subprocess with shell=True",
        "`subprocess` with a list of arguments",
        nodes(ast.Call, _has_shell, "shell=True"),
        "import subprocess\nsubprocess.run('ls', shell=True)",
        PYTHON_FOLDERS,
    ),
    Ban(
        "yaml.load",
        "`yaml.safe_load`",
        names("yaml.load", "yaml.load_all", "yaml.unsafe_load"),
        "import yaml\nyaml.load(text)",
        PYTHON_FOLDERS,
    ),
    Ban(
        "the name of a temporary file that does not exist yet",
        "`tempfile.mkstemp`, or the fixture `tmp_path`",
        names("tempfile.mktemp"),
        "import tempfile\nname = tempfile.mktemp()",
        PYTHON_FOLDERS,
    ),
    Ban(
        "a file moved or linked to a visible name",
        "`write_atomic` and `create_exclusive` (spark_ckpt/storage/base.py): they sync first",
        names("os.rename", "os.replace", "os.link", "os.symlink", "shutil.move"),
        "import os\nos.replace(a, b)",
        allowed=frozenset({"spark_ckpt/storage/local.py", "spark_ckpt/metadata/files.py"}),
    ),
    Ban(
        "the end of the process",
        "an error below `SparkCkptError`; entry points turn it into an exit status",
        names("sys.exit", "os._exit", "os.abort"),
        "import sys\nsys.exit(1)",
        allowed=frozenset({"spark_ckpt/cli/main.py", "spark_ckpt/bridge/__main__.py"}),
    ),
    Ban(
        "an open port",
        "the pipe between driver and side process (docs/architecture.md): no port is opened",
        names("socket.socket", "socket.create_server", "socketserver", "http.server"),
        "import socket\nserver = socket.socket()",
    ),
    Ban(
        "Python's hash of a value",
        "`zlib.crc32` or a digest: the hash of a string differs in each process",
        names("hash"),
        "group = hash(key) % 128",
        allowed=frozenset({"spark_ckpt/metadata/keyrange.py"}),  # `__hash__` of a value
    ),
    Ban(
        "the generator of random numbers of the process",
        "a `random.Random` with a seed, in tests the fixture `rng`",
        names(
            *(
                f"random.{name}"
                for name in (
                    "random",
                    "randint",
                    "randrange",
                    "randbytes",
                    "choice",
                    "choices",
                    "sample",
                    "shuffle",
                    "seed",
                    "uniform",
                )
            )
        ),
        "import random\nrandom.shuffle(order)",
        PYTHON_FOLDERS,
    ),
    Ban(
        "a check by assert",
        "an error below `SparkCkptError`, or `ValueError`: `python -O` drops asserts. Those that only tell the type "
        "checker a type (`is not None`, `isinstance`) may stay",
        nodes(ast.Assert, _is_check, "assert"),
        "assert isinstance(size, int)\nassert size > 0",
        allowed=frozenset({"spark_ckpt/spark_files/logs.py"}),
    ),
    Ban(
        "text in the encoding of the machine",
        '`encoding="utf-8"`',
        nodes(ast.Call, _lacks_encoding, "("),
        "data = open(path, 'rb')\ntext = path.read_text()",
        allowed=frozenset({"spark_ckpt/cli/standard_streams.py"}),  # /dev/null
    ),
    Ban(
        "sleep in a test",
        "`eventually` (tests/support/waiting.py), which waits for the event and not for a time",
        names("time.sleep"),
        "import time\ntime.sleep(1)",
        ("tests",),
        # Pauses that are the input of a test: a slow storage, a slow row, a kill at a random moment; or the poll.
        allowed=frozenset(
            {
                "tests/bridge/test_jvm_bridge.py",
                "tests/demo/test_supervisor.py",
                "tests/faults/driver.py",
                "tests/faults/injection.py",
                "tests/faults/relay.py",
                "tests/soak/cluster/run.py",
                "tests/soak/yarn.py",
                "tests/spark/jobs/attempts.py",
                "tests/spark/jobs/kafka_main.py",
                "tests/spark/jobs/real_time.py",
                "tests/spark/jobs/running_count.py",
                "tests/spark/jobs/standing_count.py",
                "tests/spark/jobs/submitted_count.py",
                "tests/spark/kafka_main_job.py",
                "tests/spark/real_time_queries.py",
                "tests/spark/test_foreach_batch.py",
                "tests/spark/test_restore.py",
                "tests/suites/jvm.py",
                "tests/support/kafka.py",
                "tests/support/memory.py",
                "tests/support/waiting.py",
            }
        ),
    ),
)


def _in_scala(
    construct: str, instead: str, lines: Callable[[Path], Iterator[int]], planted: str, allowed: str = ""
) -> Ban:
    """Ban for the engine and the shim. One file of the package `org.apache.spark.sql.ckpt` may have the construct."""
    allowed_files = frozenset({f"{SHIM}/scala/org/apache/spark/sql/ckpt/{allowed}"}) if allowed else frozenset[str]()
    return Ban(construct, instead, lines, planted, SCALA_FOLDERS, ".scala", allowed_files)


SCALA = (
    _in_scala(
        "output by println",
        "Spark's `Logging`",
        scala(r"\bprintln\(|\bSystem\.(?:out|err)\b|\bprintStackTrace\b"),
        '/* println("a comment") */\nprintln("done")',
    ),
    _in_scala("Thread.sleep", "a wait for the event, with a deadline", scala(r"\bThread\.sleep\b"), "Thread.sleep(10)"),
    _in_scala(
        "return",
        "the last expression",
        scala(r"(?<!@)\breturn\b"),
        "/** @return nothing */\nif (tasks.isEmpty) return Nil",
        allowed="transfer/StateTransfer.scala",
    ),
    _in_scala(
        "the end of the JVM",
        "an exception: the JVM is Spark's",
        scala(r"\bSystem\.exit\b|\bsys\.exit\b|\.halt\("),
        "System.exit(1)",
    ),
    _in_scala(
        "every error caught and dropped",
        "`NonFatal`, or `OwnThreads.guard`, which logs the error",
        scala(r"case _: Throwable\b"),
        "try work() catch { case _: Throwable => () }",
    ),
    _in_scala("sys.error", "an exception that names its cause and remedy", scala(r"\bsys\.error\b"), 'sys.error("no")'),
    _in_scala("code that is not written yet", "the code", scala(r"\?\?\?"), "def later: Int = ???"),
    _in_scala(
        "Java's serialization of what was read",
        "`bridge.Message`, or a format of docs/protocol.md: what reads objects runs them",
        scala(r"\bnew ObjectInputStream\b"),
        "val in = new ObjectInputStream(file)",
    ),
    _in_scala(
        "bytes of text in the encoding of the machine",
        "`UTF_8`",
        scala(r"\.getBytes\b(?!\(\S)|\bnew String\([^,()]*(?:\([^()]*\)[^,()]*)*\)"),
        "val a = text.getBytes(UTF_8)\nval b = text.getBytes",
    ),
    _in_scala(
        "letters in the case of the machine's language",
        "`toLowerCase(Locale.ROOT)`",
        scala(r"\.to(?:Lower|Upper)Case\b(?!\(\S)"),
        "val a = text.toLowerCase(Locale.ROOT)\nval b = text.toLowerCase",
    ),
    _in_scala(
        "a decimal number with the point of the machine's language",
        "`String.format(Locale.ROOT, ...)`",
        scala(r'(?<!\w)f"[^"\n]*%\.?\d*f', in_strings=True),
        'val a = f"$epoch%020d"\nval b = f"$share%.1f"',
    ),
    _in_scala(
        "JavaConverters",
        "`scala.jdk.CollectionConverters`",
        scala(r"\bJavaConver(?:ters|sions)\b"),
        "import scala.collection.JavaConverters._",
    ),
    _in_scala(
        "random numbers without a seed",
        "a generator with a seed: a failure can then be repeated",
        scala(r"\bMath\.random\b|\bRandom\.next|\bnew (?:scala\.util\.|java\.util\.)?Random\(?\)?$"),
        "val number = Math.random()",
    ),
)
