"""`make golden`: writes the golden locations of the current release."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from spark_ckpt import __version__
from tests.golden.locations import LOCATIONS, write
from tests.golden.queries import QUERIES
from tests.support.provider import CKPT
from tests.support.session import open_session


def main() -> int:
    """Writes all golden locations of the current release, replacing existing ones."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", help="name of a query; all unless given")
    only = parser.parse_args().only or [query.name for query in QUERIES]
    with tempfile.TemporaryDirectory() as folder:
        spark = open_session(CKPT, Path(folder) / "spark")
        for query in QUERIES:
            if query.name in only:
                shutil.rmtree(LOCATIONS / __version__ / query.name, ignore_errors=True)
                session = spark.newSession()
                for key, value in CKPT.conf().items():
                    session.conf.set(key, value)
                print(write(session, query, Path(folder) / query.name, LOCATIONS).relative_to(LOCATIONS.parent))
        spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
