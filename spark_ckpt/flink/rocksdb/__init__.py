"""RocksDB's files, read without RocksDB: MANIFEST, block-based tables, deletions and merges.

For the checkpoints of Flink's RocksDB backend: formats up to 5, Snappy, LZ4 and Zstandard, no write-ahead log, no blob
files. Facts of the format are from RocksDB's sources, which the modules name.
"""

from spark_ckpt.flink.rocksdb.checksums import ChecksumUnavailableError
from spark_ckpt.flink.rocksdb.database import Database
from spark_ckpt.flink.rocksdb.errors import MissingTableError, RocksDbFormatError, UnsupportedRocksDbError
from spark_ckpt.flink.rocksdb.files import InMemory, RandomAccess
from spark_ckpt.flink.rocksdb.table import Table

__all__ = [
    "ChecksumUnavailableError",
    "Database",
    "InMemory",
    "MissingTableError",
    "RandomAccess",
    "RocksDbFormatError",
    "Table",
    "UnsupportedRocksDbError",
]
