"""Operator id of a uid (`StreamGraphHasherV2.generateUserSpecifiedHash`): MurmurHash3 x64 128 with seed 0, of UTF-8."""

from __future__ import annotations

from struct import Struct

_U64 = 0xFFFFFFFFFFFFFFFF
_FIRST, _SECOND = 0x87C37B91114253D5, 0x4CF5AD432745937F
_BLOCK = Struct("<QQ")


def operator_id_of(uid: str) -> bytes:
    """Operator id of the operator with this uid, 16 bytes in the order of the printed id."""
    content = uid.encode()
    first = second = 0
    whole = len(content) - len(content) % _BLOCK.size
    for low, high in _BLOCK.iter_unpack(content[:whole]):
        first = (_rotated(first ^ _mixed_first(low), 27) + second) * 5 + 0x52DCE729 & _U64
        second = (_rotated(second ^ _mixed_second(high), 31) + first) * 5 + 0x38495AB5 & _U64
    if rest := content[whole:]:
        low, high = _BLOCK.unpack(rest.ljust(_BLOCK.size, b"\0"))
        first ^= _mixed_first(low)
        second ^= _mixed_second(high)
    first ^= len(content)
    second ^= len(content)
    first = first + second & _U64
    second = second + first & _U64
    first, second = _final(first), _final(second)
    first = first + second & _U64
    return _BLOCK.pack(first, second + first & _U64)


def _mixed_first(word: int) -> int:
    return _rotated(word * _FIRST & _U64, 31) * _SECOND & _U64


def _mixed_second(word: int) -> int:
    return _rotated(word * _SECOND & _U64, 33) * _FIRST & _U64


def _final(code: int) -> int:
    code = (code ^ code >> 33) * 0xFF51AFD7ED558CCD & _U64
    code = (code ^ code >> 33) * 0xC4CEB9FE1A85EC53 & _U64
    return code ^ code >> 33


def _rotated(code: int, bits: int) -> int:
    return (code << bits | code >> 64 - bits) & _U64
