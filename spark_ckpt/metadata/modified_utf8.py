"""Java's modified UTF-8, as `DataOutput.writeUTF` and `DataInput.readUTF` define it.

Each UTF-16 code unit is encoded separately: one byte for U+0001 to U+007F, two for U+0000 and U+0080 to U+07FF, three
for the rest. A character above U+FFFF therefore becomes two surrogates of three bytes each, and lone surrogates are
possible.
"""

from __future__ import annotations

MAX_BYTES = 65535
"""Maximum bytes of an encoded string: its length is an unsigned 16-bit integer."""


class MalformedUtf8Error(ValueError):
    """Bytes that are not modified UTF-8.

    Attributes:
        position: byte position in the encoded string.
    """

    def __init__(self, position: int) -> None:
        super().__init__(f"malformed modified UTF-8 at byte {position}")
        self.position = position


def encode(text: str) -> bytes:
    """Encode a string, including lone surrogates. The caller checks the length against `MAX_BYTES`."""
    if text.isascii() and "\0" not in text:
        return text.encode("ascii")
    units = text.encode("utf-16-be", "surrogatepass")
    encoded = bytearray()
    for high, low in zip(units[::2], units[1::2], strict=True):
        unit = high << 8 | low
        if 0 < unit < 0x80:
            encoded.append(unit)
        elif unit < 0x800:
            encoded += bytes((0xC0 | unit >> 6, 0x80 | unit & 0x3F))
        else:
            encoded += bytes((0xE0 | unit >> 12, 0x80 | unit >> 6 & 0x3F, 0x80 | unit & 0x3F))
    return bytes(encoded)


def decode(encoded: bytes) -> str:
    """Decode a string as `readUTF` does, including plain zero bytes, overlong forms and lone surrogates.

    Raises:
        MalformedUtf8Error: an invalid or missing continuation byte, or a byte that cannot start a character of at most
            three bytes.
    """
    if encoded.isascii():
        return encoded.decode("ascii")
    units = bytearray()
    at = 0
    while at < len(encoded):
        lead = encoded[at]
        length = _LENGTH_BY_LEAD[lead >> 4]
        if not length or at + length > len(encoded):
            raise MalformedUtf8Error(at)
        unit = lead & _BITS_BY_LENGTH[length]
        for continuation in encoded[at + 1 : at + length]:
            if continuation & 0xC0 != 0x80:
                raise MalformedUtf8Error(at)
            unit = unit << 6 | continuation & 0x3F
        units += unit.to_bytes(2, "big")
        at += length
    return units.decode("utf-16-be", "surrogatepass")


# By the upper four bits of a lead byte. 0 for continuation bytes and lead bytes of four-byte forms: both are invalid.
_LENGTH_BY_LEAD = (1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 2, 2, 3, 0)
_BITS_BY_LENGTH = (0, 0x7F, 0x1F, 0x0F)
