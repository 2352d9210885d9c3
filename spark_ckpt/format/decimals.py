"""Decimals and integers of any size as Java has them, in `UnsafeRow` and in Flink's serializers."""

from __future__ import annotations

from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal

_EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)


def twos_complement(number: int) -> bytes:
    """`BigInteger.toByteArray`."""
    return number.to_bytes((number if number >= 0 else ~number).bit_length() // 8 + 1, "big", signed=True)


def decimal_of(unscaled: int, scale: int) -> Decimal:
    """Number of an unscaled integer and a scale, which the result keeps."""
    return Decimal(unscaled).scaleb(-scale, _EXACT)


def unscaled_of(number: Decimal) -> tuple[int, int]:
    """Unscaled integer and scale of a finite number."""
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int)
    return int(number.scaleb(-exponent, _EXACT)), -exponent
