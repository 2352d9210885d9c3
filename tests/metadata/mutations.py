"""Random damage to metadata files, as from a disk, a wrong offset or a careless program."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from spark_ckpt import metadata as m
from tests.metadata.corpus import FLINK, MUTANTS
from tests.metadata.examples import everywhere

MAX_BYTES = 5000

WILD_32 = (0, 1, -1, -2, 2, 127, 128, 255, 32768, 65535, 2**24, 2**31 - 1, 2**31 - 8, -(2**31), -(2**31) + 1)
WILD_64 = (0, -1, -2, 1, 2**31, 2**32, 2**63 - 1, -(2**63))
CODES = range(19)


def seeds() -> list[bytes]:
    """Undamaged files: written by Flink, handmade, and with every code in every position."""
    vectors = [vector.content for vector in (*FLINK, *MUTANTS)]
    made = [m.dumps(metadata, version) for version in (2, 3, 4) for metadata in everywhere(version)]
    return [content for content in (*vectors, *made) if len(content) <= MAX_BYTES]


def mutated(rng: random.Random, content: bytes, others: Sequence[bytes]) -> bytes:
    """Content with one to three mutations, mostly outside the header."""
    damaged = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        if len(damaged) < 9:
            break
        at = rng.randrange(8, len(damaged)) if rng.random() < 0.98 else rng.randrange(len(damaged))
        rng.choice(_MUTATIONS)(rng, damaged, at, others)
    return bytes(damaged)


def _flip(rng: random.Random, data: bytearray, at: int, others: Sequence[bytes]) -> None:
    data[at] ^= 1 << rng.randrange(8)


def _byte(rng: random.Random, data: bytearray, at: int, others: Sequence[bytes]) -> None:
    data[at] = rng.randrange(256)


def _code(rng: random.Random, data: bytearray, at: int, others: Sequence[bytes]) -> None:
    data[at] = rng.choice(CODES)


def _wild_32(rng: random.Random, data: bytearray, at: int, others: Sequence[bytes]) -> None:
    data[at : at + 4] = rng.choice(WILD_32).to_bytes(4, "big", signed=True)


def _wild_64(rng: random.Random, data: bytearray, at: int, others: Sequence[bytes]) -> None:
    data[at : at + 8] = rng.choice(WILD_64).to_bytes(8, "big", signed=True)


def _step(rng: random.Random, data: bytearray, at: int, others: Sequence[bytes]) -> None:
    """Changes a 32-bit number, such as a count, by at most 2."""
    number = int.from_bytes(data[at : at + 4], "big") + rng.randint(-2, 2)
    data[at : at + 4] = (number % 2**32).to_bytes(4, "big")


def _delete(rng: random.Random, data: bytearray, at: int, others: Sequence[bytes]) -> None:
    del data[at : at + rng.randint(1, 16)]


def _repeat(rng: random.Random, data: bytearray, at: int, others: Sequence[bytes]) -> None:
    data[at:at] = data[at : at + rng.randint(1, 64)]


def _splice(rng: random.Random, data: bytearray, at: int, others: Sequence[bytes]) -> None:
    other = rng.choice(others)
    start = rng.randrange(len(other) + 1)
    piece = other[start : start + rng.randint(1, 64)]
    data[at : at + rng.choice((0, len(piece)))] = piece


def _truncate(rng: random.Random, data: bytearray, at: int, others: Sequence[bytes]) -> None:
    del data[at:]


_MUTATIONS: tuple[Callable[[random.Random, bytearray, int, Sequence[bytes]], None], ...] = (
    _flip,
    _flip,
    _byte,
    _code,
    _wild_32,
    _wild_64,
    _step,
    _delete,
    _repeat,
    _splice,
    _truncate,
)
