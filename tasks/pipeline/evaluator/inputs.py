"""Shops from a generator: customers, products and events, with the faults that real logs have."""

import random
from datetime import datetime, timedelta

REGIONS = ["north", "south", "east", "west", "islands"]
PLANS = ["basic", "plus", "family", "trial"]
CATEGORIES = ["food", "tools", "books", "garden", "toys", "music"]
WORDS = [
    "amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "haven",
    "inlet", "jetty", "knoll", "larch", "maple", "ocean", "pearl",
]  # fmt: skip


def shop(events: int, customers: int, products: int, hours: int, faults: float, rng: random.Random) -> str:
    """The text of a shop; `faults` is the share of events that are not as they should be."""
    people = [f"c{number}" for number in rng.sample(range(1000), customers)]
    goods = [f"p{number}" for number in rng.sample(range(1000), products)]
    lines = ["# a shop", "[customers]"]
    for key in people:
        name = f"{rng.choice(WORDS)} {rng.choice(WORDS)}".title()
        lines.append(f"{key}|{name}|{rng.choice(REGIONS)}|{rng.choice(PLANS)}")
    if rng.random() < faults:
        lines.append(f"{rng.choice(people)}|{rng.choice(WORDS).title()}|{rng.choice(REGIONS)}|{rng.choice(PLANS)}")
        lines.append(rng.choice([people[0], f"{people[0]}|only a name", f"{people[0]}|a|b|c|d"]))
    lines.append("[products]")
    for key in goods:
        lines.append(
            f"{key} | {rng.choice(WORDS)} {rng.choice(WORDS)} | {rng.choice(CATEGORIES)} | {rng.randint(5, 40_000)}"
        )
    if rng.random() < faults:
        lines.append(f"{rng.choice(goods)}|{rng.choice(WORDS)}|{rng.choice(CATEGORIES)}|{rng.randint(5, 40_000)}")
    lines += ["", "[events]"]
    for number, time in enumerate(times(events, hours, rng)):
        fields = [
            f"e{number}",
            time.isoformat(),
            people[int(customers * rng.random() ** 2)],
            rng.choices(["view", "buy", "return"], [6, 3, 1])[0],
            goods[int(products * rng.random() ** 2)],
            str(rng.randint(1, 5)),
        ]
        if rng.random() < faults:
            spoil(fields, number, rng)
        separator = rng.choice(["|", "|", "|", " | "])
        lines.append(separator.join(fields))
        if rng.random() < faults / 4:
            lines.append(rng.choice(["", "   ", "# a remark | with fields", "  # and another"]))
    return "\n".join(lines) + rng.choice(["", "\n"])


def times(count: int, hours: int, rng: random.Random) -> list[datetime]:
    """Times that come in bursts, nearly in order."""
    start = datetime(2026, 2, 27, rng.randrange(24), rng.randrange(60), rng.randrange(60))
    bursts = [rng.uniform(0, hours * 3600) for _ in range(max(1, count // 40))]
    seconds = sorted(rng.choice(bursts) + rng.expovariate(1 / 900) for _ in range(count))
    for _ in range(count // 20):
        one, other = rng.randrange(count), rng.randrange(count)
        seconds[one], seconds[other] = seconds[other], seconds[one]
    return [start + timedelta(seconds=int(second)) for second in seconds]


def spoil(fields: list[str], number: int, rng: random.Random) -> None:
    fault = rng.randrange(9)
    if fault == 0:
        fields.pop(rng.randrange(len(fields)))
    elif fault == 1:
        fields.append("more")
    elif fault == 2:
        fields[1] = rng.choice(
            ["2026-02-30T10:00:00", "2026-3-1T9:00:00", "2026-03-01 09:00:00", "2026-03-01T24:00:00", "now", ""]
        )
    elif fault == 3:
        fields[3] = rng.choice(["Buy", "look", "", "buy buy"])
    elif fault == 4:
        fields[5] = rng.choice(["0", "00", "-1", "100", "1.0", "two", "", "+1"])
    elif fault == 5:
        fields[2] = rng.choice(["c1000", "C1", ""])
    elif fault == 6:
        fields[4] = rng.choice(["p1000", "", "p"])
    else:
        fields[0] = f"e{rng.randrange(number + 1)}"
