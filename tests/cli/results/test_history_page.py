from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from spark_ckpt.checkpoint.statistics import CheckpointStats, CheckpointStatus, StateSize
from spark_ckpt.cli.results.history_page import history_page, write_page
from spark_ckpt.errors import StorageError
from spark_ckpt.location.errors import TargetExistsError
from tests.support.s3 import S3

NOW_MS = 1_700_000_100_000
COMPLETED = CheckpointStats(
    CheckpointStatus.COMPLETED,
    *(1, 2, 1_700_000_000_000, 1500, 4, 4),
    checkpoint_id=3,
    completing_ms=7,
    size=StateSize(4096, 2048, 12),
)
FAILED = CheckpointStats(
    CheckpointStatus.FAILED, 2, 3, 1_700_000_060_000, 900, 1, 4, failures={"declined": 2}, detail="disk full"
)
HOSTILE = "</td><script src='https://evil.example/x.js'></script><img onerror=\"alert(1)\">"


class Page(HTMLParser):
    """Tags with their attributes, and the text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_page_has_the_figures() -> None:
    page = Page(history_page("/data/q", [COMPLETED, FAILED], NOW_MS))
    assert "Checkpoints of /data/q" in page.text
    assert "2 checkpoints, 1 aborted, median duration 1 s 500 ms" in page.text
    for value in ("1,500 ms", "7 ms", "4.0 KiB", "declined: 2; disk full", "2023-11-14T22:14:20.000Z"):
        assert value in page.text
    assert len([tag for tag, _ in page.tags if tag == "svg"]) == 7
    assert [attributes["class"] for tag, attributes in page.tags if tag == "tr" and attributes] == [
        "failed",
        "completed",
    ]


@pytest.mark.parametrize("entries", [[], [FAILED], [COMPLETED], [replace(COMPLETED, batch_id=i) for i in range(300)]])
def test_any_number_of_checkpoints(entries: list[CheckpointStats]) -> None:
    page = Page(history_page("/data/q", entries, NOW_MS))
    assert len([tag for tag, _ in page.tags if tag == "tr"]) == (len(entries) + 1 if entries else 0)


def test_a_page_loads_and_runs_nothing() -> None:
    hostile = replace(FAILED, detail=HOSTILE, failures={HOSTILE: 1})
    text = history_page(f"s3://b/{HOSTILE}", [COMPLETED, hostile], NOW_MS)
    page = Page(text)
    names = {tag for tag, _ in page.tags}
    assert not names & {"script", "img", "link", "iframe", "object", "embed", "base", "form", "a", "image", "use"}
    attributes = {name for _, each in page.tags for name in each}
    assert not {name for name in attributes if name.startswith("on") or name in ("src", "href", "style")}
    assert HOSTILE in page.text  # as text
    assert "url(" not in text and "@import" not in text
    (policy,) = [each["content"] for _, each in page.tags if each.get("http-equiv") == "Content-Security-Policy"]
    assert policy == "default-src 'none'; style-src 'unsafe-inline'"


def test_credentials_are_hidden() -> None:
    failed = replace(FAILED, detail="cannot write s3://key:secretsecret@b/q?sig=abcdefgh")
    text = history_page("s3://key:secretsecret@b/q", [failed], NOW_MS)
    assert "secretsecret" not in text
    assert "abcdefgh" not in text


def test_a_file_is_not_overwritten(tmp_path: Path) -> None:
    place = str(tmp_path / "new" / "report.html")
    write_page(place, "first", force=False)
    with pytest.raises(TargetExistsError):
        write_page(place, "second", force=False)
    assert Path(place).read_text() == "first"
    write_page(place, "third", force=True)
    assert Path(place).read_text() == "third"
    with pytest.raises(TargetExistsError):
        write_page(str(tmp_path / "new"), "directory", force=False)
    with pytest.raises(StorageError):
        write_page(str(tmp_path / "new"), "directory", force=True)
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["report.html"]


def test_a_file_in_the_current_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_page("report.html", "page", force=False)
    assert (tmp_path / "report.html").read_text() == "page"


def test_a_page_on_s3(s3: S3) -> None:
    write_page(f"{s3.url}/deep/report.html", "page", force=False)
    with pytest.raises(TargetExistsError):
        write_page(f"{s3.url}/deep/report.html", "page", force=False)
    write_page(f"{s3.url}/deep/report.html", "page", force=True)
