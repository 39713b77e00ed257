"""Damage to the bytes of a file."""

from __future__ import annotations

import random

NASTY = [
    b"\x00",
    b"\xff",
    b"\n",
    b"\t",
    b"[" * 3000,
    b"9" * 5000,
    b"\xed\xa0\x80",
    b"\xf0\x9f",
    b"&a *a",
    b"%",
    b"\\u0000",
]


def damaged(content: bytes, chance: random.Random) -> bytes:
    """Return bytes flipped, cut short, extended, doubled, overwritten or exchanged for others."""
    data = bytearray(content)
    for _ in range(chance.choice([1, 1, 1, 2, 5])):
        position = chance.randrange(len(data) + 1)
        what = chance.randrange(8)
        if what == 0 or not data:
            data[position:position] = chance.choice(NASTY)
        elif what <= 3:
            for _ in range(chance.choice([1, 1, 4, 32])):
                data[chance.randrange(len(data))] = chance.randrange(256)
        elif what == 4:
            del data[position:]
        elif what == 5:
            del data[position : position + chance.choice([1, 2, 8, 1000])]
        elif what == 6:
            data[position:position] = data[chance.randrange(len(data)) :][: chance.choice([1, 8, 1000])]
        else:
            data[position : position + 8] = chance.choice([0, 1, 2**31 - 1, 2**63 - 1, 2**64 - 1]).to_bytes(8, "little")
    return bytes(data)
