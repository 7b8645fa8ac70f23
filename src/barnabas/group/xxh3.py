"""XXH3, the 64-bit hash, in plain Python.

By length of the input: 0, 1-3, 4-8, 9-16, 17-128 and 129-240 bytes each have their own short mixing; longer input runs in stripes of
64 bytes over eight accumulators, which are scrambled after each block of 16 stripes, and the last stripe is always the last 64 bytes.

Slow as hashes go (about 3 µs per stripe), and fast enough: it is computed once per topic and change of it.

Source: the specification of xxHash 0.8 (XXH3_64bits, seed 0, default secret).
"""

from __future__ import annotations

import struct

_MASK = (1 << 64) - 1
_P32_1, _P32_2, _P32_3 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D
_P64_1, _P64_2, _P64_3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P64_4, _P64_5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
_MX1, _MX2 = 0x165667919E3779F9, 0x9FB21C651E98DF25

# The default secret, which the specification gives as bytes.
_SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
    "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
_STRIPE, _STRIPES_PER_BLOCK = 64, 16
_U32, _U64, _STRIPE_WORDS = struct.Struct("<I"), struct.Struct("<Q"), struct.Struct("<8Q")


def xxh3_64(data: bytes) -> int:
    """The hash, as an unsigned 64-bit number."""
    length = len(data)
    if length <= 16:
        return _up_to_16(data, length)
    if length <= 128:
        return _up_to_128(data, length)
    if length <= 240:
        return _up_to_240(data, length)
    return _long(data, length)


def _read32(data: bytes, at: int) -> int:
    return int(_U32.unpack_from(data, at)[0])


def _read64(data: bytes, at: int) -> int:
    return int(_U64.unpack_from(data, at)[0])


def _secret(at: int) -> int:
    return _read64(_SECRET, at)


def _fold(a: int, b: int) -> int:
    product = a * b
    return (product & _MASK) ^ (product >> 64)


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> (64 - bits)) & _MASK


def _avalanche(value: int) -> int:
    value &= _MASK
    value = (value ^ value >> 37) * _MX1 & _MASK
    return value ^ value >> 32


def _avalanche_64(value: int) -> int:
    """The final mixing of the older XXH64, which the shortest inputs use."""
    value = (value ^ value >> 33) * _P64_2 & _MASK
    value = (value ^ value >> 29) * _P64_3 & _MASK
    return value ^ value >> 32


def _up_to_16(data: bytes, length: int) -> int:
    if length == 0:
        return _avalanche_64(_secret(56) ^ _secret(64))
    if length <= 3:
        combined = data[0] << 16 | data[length >> 1] << 24 | data[-1] | length << 8
        return _avalanche_64(combined ^ _read32(_SECRET, 0) ^ _read32(_SECRET, 4))
    if length <= 8:
        first, last = _read32(data, 0), _read32(data, length - 4)
        value = (last + (first << 32)) ^ _secret(8) ^ _secret(16)
        value ^= _rotate(value, 49) ^ _rotate(value, 24)
        value = value * _MX2 & _MASK
        value = (value ^ (value >> 35) + length) * _MX2 & _MASK
        return value ^ value >> 28
    low = _read64(data, 0) ^ _secret(24) ^ _secret(32)
    high = _read64(data, length - 8) ^ _secret(40) ^ _secret(48)
    return _avalanche(length + int.from_bytes(low.to_bytes(8, "little"), "big") + high + _fold(low, high))


def _mix(data: bytes, at: int, secret_at: int) -> int:
    return _fold(_read64(data, at) ^ _secret(secret_at), _read64(data, at + 8) ^ _secret(secret_at + 8))


def _up_to_128(data: bytes, length: int) -> int:
    total = length * _P64_1
    for step in range((length - 1) // 32 + 1):
        total += _mix(data, 16 * step, 32 * step) + _mix(data, length - 16 * (step + 1), 32 * step + 16)
    return _avalanche(total)


def _up_to_240(data: bytes, length: int) -> int:
    total = length * _P64_1 + sum(_mix(data, 16 * step, 16 * step) for step in range(8))
    total = _avalanche(total)
    total += sum(_mix(data, 16 * step, 16 * (step - 8) + 3) for step in range(8, length // 16))
    return _avalanche(total + _mix(data, length - 16, 136 - 17))


def _long(data: bytes, length: int) -> int:
    lanes = [_P32_3, _P64_1, _P64_2, _P64_3, _P64_4, _P32_2, _P64_5, _P32_1]
    whole_stripes = (length - 1) // _STRIPE
    for stripe in range(whole_stripes):
        in_block = stripe % _STRIPES_PER_BLOCK
        _accumulate(lanes, data, stripe * _STRIPE, 8 * in_block)
        if in_block == _STRIPES_PER_BLOCK - 1:
            _scramble(lanes)
    _accumulate(lanes, data, length - _STRIPE, len(_SECRET) - _STRIPE - 7)
    total = length * _P64_1
    for pair in range(4):
        total += _fold(lanes[2 * pair] ^ _secret(11 + 16 * pair), lanes[2 * pair + 1] ^ _secret(19 + 16 * pair))
    return _avalanche(total)


def _accumulate(lanes: list[int], data: bytes, at: int, secret_at: int) -> None:
    words = _STRIPE_WORDS.unpack_from(data, at)
    for lane, (word, secret) in enumerate(zip(words, _STRIPE_WORDS.unpack_from(_SECRET, secret_at), strict=True)):
        key = word ^ secret
        lanes[lane ^ 1] = lanes[lane ^ 1] + word & _MASK
        lanes[lane] = lanes[lane] + (key & 0xFFFFFFFF) * (key >> 32) & _MASK


def _scramble(lanes: list[int]) -> None:
    for lane, secret in enumerate(_STRIPE_WORDS.unpack_from(_SECRET, len(_SECRET) - _STRIPE)):
        value = lanes[lane]
        lanes[lane] = (value ^ value >> 47 ^ secret) * _P32_1 & _MASK
