"""Pages of Spark's UI, read over HTTP."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.error import URLError
from urllib.parse import urljoin
from urllib.request import urlopen

_PATIENCE = 300.0


@dataclass
class WebPage(HTMLParser):
    """Text, links and tables of a page.

    Args:
        address: its address.

    Attributes:
        text: all of its text.
        links: targets of its links by their text; of equal texts, the first.
        tables: the cells of each row of a table, by the id of the table, without its header.
    """

    address: str
    text: str = ""
    links: dict[str, str] = field(default_factory=dict)
    tables: dict[str, list[list[str]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__init__()
        self._table = ""
        self._in_cell = False
        self._link: str | None = None
        self._link_text = ""
        self._silent = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Enter an element."""
        attributes = dict(attrs)
        if tag in ("script", "style"):
            self._silent = True
        elif tag == "table":
            self._table = attributes.get("id") or ""
            self.tables[self._table] = []
        elif tag == "tr" and self._table:
            self.tables[self._table].append([])
        elif tag == "td" and self._table and self.tables[self._table]:
            self.tables[self._table][-1].append("")
            self._in_cell = True
        elif tag == "a":
            self._link, self._link_text = attributes.get("href"), ""

    def handle_endtag(self, tag: str) -> None:
        """Leave an element."""
        if tag in ("script", "style"):
            self._silent = False
        elif tag == "td":
            if self._in_cell and self._table:
                cells = self.tables[self._table][-1]
                cells[-1] = " ".join(cells[-1].split())
            self._in_cell = False
        elif tag == "table" and self._table:
            self.tables[self._table] = [row for row in self.tables[self._table] if row]
            self._table = ""
        elif tag == "a" and self._link is not None:
            self.links.setdefault(" ".join(self._link_text.split()), urljoin(self.address, self._link))
            self._link = None

    def handle_data(self, data: str) -> None:
        """Take text."""
        if self._silent:
            return
        self.text += data
        self._link_text += data
        if self._in_cell and self._table:
            self.tables[self._table][-1][-1] += data


def read_page(address: str) -> WebPage | None:
    """The page at an address; None while its server does not answer or has no such page."""
    try:
        with urlopen(address, timeout=_PATIENCE) as response:
            body = response.read().decode()
            page = WebPage(response.geturl())
    except (URLError, ConnectionError):
        return None
    page.feed(body)
    page.close()
    return page
