"""Check of the written rows: those of Flink, read back as every reader reads them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark_ckpt.flink.importing.errors import FlinkImportCheckError
from spark_ckpt.state.catalog import StateCatalog
from spark_ckpt.state.read import decode_merged, merged_rows
from spark_ckpt.state.rows import Rows
from spark_ckpt.state.unsafe_row import binary_array
from spark_ckpt.state.unsafe_row_encoder import encode_rows
from spark_ckpt.state.views import View
from spark_ckpt.state_writing.targets import Target, TargetKind

_DIGEST_BYTES = 8
_MODULUS = 1 << 8 * _DIGEST_BYTES


@dataclass(slots=True)
class RowDigest:
    """Number and digest of rows, independent of the order of keys. The elements of a list have places in it.

    Args:
        lists: True if consecutive rows of a key are a list.
    """

    lists: bool
    rows: int = 0
    total: int = 0
    _key: bytes | None = None
    _index: int = 0

    def add(self, keys: Rows, values: Rows) -> None:
        """Adds rows."""
        for key, value in zip(binary_array(keys).to_pylist(), binary_array(values).to_pylist(), strict=True):
            self._index = self._index + 1 if self.lists and key == self._key else 0
            self._key = key
            content = b"%d %d %b%b" % (self._index, len(key), key, value)
            self.total += int.from_bytes(hashlib.blake2b(content, digest_size=_DIGEST_BYTES).digest(), "little")
            self.rows += 1

    def matches(self, other: RowDigest) -> bool:
        """True if both have the same rows."""
        return (self.rows, self.total % _MODULUS) == (other.rows, other.total % _MODULUS)


def check_rows(catalog: StateCatalog, target: Target, expected: dict[str, RowDigest]) -> None:
    """Compares the rows of a target with those that came from Flink.

    Args:
        catalog: the state with the written segments.
        target: the target.
        expected: digest of the rows of each of its column families with rows of its own.

    Raises:
        FlinkImportCheckError: they differ.
        SegmentError, StateRowError, StorageError: they cannot be read.
    """
    store = next(store for store in catalog.stores if store.state.key == target.store.state.key)
    for family in (target.family, *target.beside):
        is_list = target.kind is TargetKind.LIST and family is target.family
        view = View(store, family, _no_columns, is_list)
        if (digest := expected.get(family.name)) is not None:
            found = RowDigest(is_list)
            for keys, values in _decoded(catalog, view):
                found.add(encode_rows(family.key, keys), encode_rows(family.value, values))
            if not found.matches(digest):
                raise FlinkImportCheckError(f"{target.operator_id}/{family.name}", digest.rows, found.rows)
        else:  # lengths of lists
            lengths = sum(int(_first(values).sum()) for _, values in _decoded(catalog, view))
            if lengths != expected[target.family.name].rows:
                raise FlinkImportCheckError(
                    f"{target.operator_id}/{family.name}", expected[target.family.name].rows, lengths
                )


def _decoded(catalog: StateCatalog, view: View) -> Iterator[tuple[pa.StructArray, pa.StructArray]]:
    return (decode_merged(view, merged) for _, merged in merged_rows(catalog, view))


def _first(values: pa.StructArray) -> NDArray[np.int64]:
    first: NDArray[np.int64] = np.asarray(values.field(0))
    return first


def _no_columns(keys: pa.StructArray, values: pa.StructArray) -> dict[str, pa.Array]:
    return {"key": keys, "value": values}
