"""A gear train: whole numbers whose products are near to a ratio, a rugged landscape."""

import math

RATIO = 0.0273790926
NAMES = tuple(f"{pair}_{side}" for pair in ("FIRST", "SECOND", "THIRD") for side in ("DRIVER", "DRIVEN"))
INVOLVED = {"ratio": NAMES, "size": NAMES}


def parts(names):
    """What the ratio is worth, by the digits that are right, and the size."""
    pairs = names["train"]()
    for teeth in sum(map(list, pairs), []):
        if teeth != int(teeth) or not 12 <= teeth <= 90:
            raise ValueError(f"expected whole numbers from 12 to 90, got {teeth}")
    ratio = math.prod(driver / driven for driver, driven in pairs)
    digits = -math.log10(abs(ratio / RATIO - 1) + 1e-7)
    return {"ratio": (digits + 2) / 9, "size": 1 - sum(map(sum, pairs)) / 540}
