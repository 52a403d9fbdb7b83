"""Damage to files, as a disk, a kill or a person may do it."""

import random
from pathlib import Path

WAYS = 4  # in which a file is damaged


def damage(file: Path, way: int, rng: random.Random) -> None:
    """Changes three bytes of a file, cuts it in half, empties it or removes it. An empty one can only be removed."""
    content = file.read_bytes()
    match way % WAYS:
        case 0 if content:
            changed = bytearray(content)
            for _ in range(3):
                changed[rng.randrange(len(changed))] ^= rng.randrange(1, 256)
            file.write_bytes(changed)
        case 1:
            file.write_bytes(content[: len(content) // 2])
        case 2:
            file.write_bytes(b"")
        case _:
            file.unlink()


def scrambled(content: bytes, number: int, rng: random.Random) -> bytes:
    """The content with one to 200 bytes written over; every seventh is cut off somewhere."""
    written = bytearray(content)
    for _ in range(rng.choice((1, 5, 200))):
        written[rng.randrange(len(written))] = rng.randrange(256)
    if number % 7 == 0:
        del written[rng.randrange(len(written)) :]
    return bytes(written)
