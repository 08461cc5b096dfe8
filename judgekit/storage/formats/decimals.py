"""Columns of decimal numbers from the bytes of a file, all at once.

Needs numpy.
"""

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]
Places = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_LONGEST = 16
"""Bytes of a number without its sign: fifteen digits and a point."""
_MINUS, _ZERO, _POINT = ord("-"), ord("0"), ord(".") ^ ord("0")


def _each(byte: int) -> np.uint64:
    return np.uint64(int.from_bytes(bytes([byte]) * 8, "little"))


_ZEROS, _LOW_BITS, _HIGH_BITS, _OVER_NINE = _each(_ZERO), _each(0x7F), _each(0x80), _each(0x80 - 10)
_NOTHING, _ONE, _SEVEN, _EIGHT, _TOP, _FULL = (np.uint64(n) for n in (0, 1, 7, 8, 56, 0xFF))
_FIRST_BYTES = np.array([(1 << 8 * n) - 1 for n in range(9)], dtype=np.uint64)
"""Mask of the first n bytes of a word."""
_ZEROS_BEHIND = _ZEROS & ~_FIRST_BYTES
"""The digit 0 in all bytes but the first n."""
_POINT_AT = np.array([*(_POINT << 8 * n for n in range(8)), 0], dtype=np.uint64)
"""What makes the n-th byte of a word a point, where it is the digit 0."""
_DIVISORS = np.array([float(10 ** max(0, 15 - bits // 8)) for bits in range(129)])
"""Power of ten by the number of bits before the point."""
_STEPS = [
    (np.uint64(2561), _EIGHT, np.uint64(0x00FF00FF00FF00FF)),
    (np.uint64(6553601), np.uint64(16), np.uint64(0x0000FFFF0000FFFF)),
    (np.uint64(42949672960001), np.uint64(32), np.uint64(0x00000000FFFFFFFF)),
]
"""Factor, shift and mask that join neighbouring digits, pairs and fours."""


def order_of(words: Words, starts: Places, lengths: Places) -> tuple[Flags, Flags] | None:
    """Which numbers are above the one before, and which equal it, where the digits show that.

    With the point at the same place, numbers are ordered as their digits are; else the longer whole part is the larger.
    No two numbers of at most 15 digits are the same float.

    Args:
        words: see `decimals_of`.
        starts: see there.
        lengths: see there.

    Returns:
        Two arrays that are shorter by one; None where some number is written in another way than `12.5`, has more than
        seven digits before the point, or more than 15 in all.
    """
    longest = int(lengths.max())
    if longest > _LONGEST:
        return None
    head = np.minimum(lengths, 8)
    first = ((words[starts] & _FIRST_BYTES[head]) | _ZEROS_BEHIND[head]) ^ _ZEROS
    place = _no_digits(first) >> _SEVEN
    # A point in each, not in front, and no zero in front but one.
    if not place.all() or not _are_points(first, place) or (place & _ONE).any():
        return None
    if (((first & _FULL) == _NOTHING) & (place != np.uint64(1 << 8))).any():
        return None
    digits = [place, first.byteswap()]
    if longest > 8:
        tail = lengths - head
        second = ((words[starts + 8] & _FIRST_BYTES[tail]) | _ZEROS_BEHIND[tail]) ^ _ZEROS
        if _no_digits(second).any():
            return None
        digits.append(second.byteswap())
    above, same = digits[-1][1:] > digits[-1][:-1], digits[-1][1:] == digits[-1][:-1]
    for word in reversed(digits[:-1]):
        is_same = word[1:] == word[:-1]
        above = (word[1:] > word[:-1]) | (is_same & above)
        same &= is_same
    return above, same


def decimals_of(words: Words, starts: Places, lengths: Places) -> npt.NDArray[np.float64] | None:
    """Numbers such as `12.5`, `-3` or `.25`, rounded as C and Python round them.

    The digits are a whole number below 10^15, and the divisor is a power of ten up to 10^15. Floats hold both exactly,
    so the division is the only thing that is rounded.

    Args:
        words: the eight bytes that begin at each byte of a file, the first as the lowest; at least 16 after each start.
        starts: where each number begins, in bytes.
        lengths: bytes of each, at least 1.

    Returns:
        Shape of `starts`; None where some number is written in another way, or is longer.

    Source: Clinger 1990, "How to Read Floating Point Numbers Accurately", the exact case; eight digits in a word as in
    Lemire 2021, "Number Parsing at a Gigabyte per Second".
    """
    first = words[starts]
    is_negative = (first & _FULL) == _MINUS
    has_negative = bool(is_negative.any())
    if has_negative:
        starts, lengths = starts + is_negative, lengths - is_negative
        first = words[starts]
    if lengths.max() > _LONGEST or lengths.min() < 1:
        return None
    found = _unsigned(first, words[starts + 8], lengths)
    if found is not None and has_negative:
        found[is_negative] *= -1.0
    return found


def _unsigned(first: Words, second: Words, lengths: Places) -> npt.NDArray[np.float64] | None:
    """Numbers from their first and their next eight bytes."""
    head, tail = np.minimum(lengths, 8), np.maximum(lengths, 8) - 8
    # From here on a digit is its value; zeros behind a number change nothing once it has a point.
    first = ((first & _FIRST_BYTES[head]) | _ZEROS_BEHIND[head]) ^ _ZEROS
    second = ((second & _FIRST_BYTES[tail]) | _ZEROS_BEHIND[tail]) ^ _ZEROS
    is_whole = (_no_digits(first) | _no_digits(second)) == _NOTHING
    if (is_whole & (lengths == _LONGEST)).any() or (~is_whole & (lengths == 1)).any():
        return None
    if is_whole.any():
        first = first | _POINT_AT[head] * is_whole
        second = second | _POINT_AT[tail] * (is_whole & (lengths >= 8))
    in_first, in_second = _no_digits(first) >> _SEVEN, _no_digits(second) >> _SEVEN
    if not _are_points(first, in_first) or not _are_points(second, in_second):
        return None
    if ((in_first == _NOTHING) == (in_second == _NOTHING)).any():
        return None
    before = in_first - _ONE  # all ones where the point is in the second word
    high = (first & before) | (((first >> _EIGHT) | (second << _TOP)) & ~before)
    before_in_second = (in_second - _ONE) * (in_first == _NOTHING)
    low = (second & before_in_second) | ((second >> _EIGHT) & ~before_in_second)
    digits = _eight_digits(high) * np.uint64(10**7) + _eight_digits(low << _EIGHT)
    bits = np.bitwise_count(before) + np.bitwise_count(before_in_second)
    return np.asarray(digits.astype(np.float64) / _DIVISORS[bits])


def _no_digits(word: Words) -> Words:
    """The high bit of each byte that is above 9."""
    return (((word & _LOW_BITS) + _OVER_NINE) | word) & _HIGH_BITS


def _are_points(word: Words, place: Words) -> bool:
    """Whether at most one byte of each word is marked, by its lowest bit, and those are points."""
    return not ((place & (place - _ONE)) | ((word & place * _FULL) ^ place * np.uint64(_POINT))).any()


def _eight_digits(word: Words) -> Words:
    """The number whose digits are the bytes, the first as the lowest."""
    for factor, shift, mask in _STEPS:
        word = (word * factor >> shift) & mask
    return word
