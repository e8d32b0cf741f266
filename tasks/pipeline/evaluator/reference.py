"""The report as the evaluator computes it: written apart from the seed, in one pass where that is possible."""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import combinations

EPOCH = datetime(2000, 1, 1)
TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}")
QUANTITY = re.compile(r"0?[1-9]|[1-9][0-9]")
SIGN = {"view": 0, "buy": 1, "return": -1}
CLASSES = ["1", "2-3", "4-7", "8-15", "16+"]

Row = Sequence[str | int]
Event = tuple[int, str, str, str, int, int]
"""Seconds, customer, action, product, quantity, amount in cents."""


def report(text: str) -> str:
    customers, products, rejected, events = read(text)
    sessions = split(events)
    revenue: Counter[str] = Counter()
    spent: Counter[str] = Counter()
    units: Counter[str] = Counter()
    for _, customer, action, product, quantity, amount in events:
        revenue[product] += amount
        spent[customer] += amount
        units[product] += quantity if action == "buy" else 0
    return "".join(
        [
            table("rejected", "reason lines first", rejects(rejected)),
            table("totals", "region category events units revenue median tenth", totals(events, customers, products)),
            table("hours", "from events customers revenue busiest", hours(events)),
            table("sessions", "events sessions together longest", histogram(sessions)),
            table("bought together", "one other sessions", together(sessions)),
            table("conversions", ["plan", "buys", "seen before"], conversions(events, customers)),
            table("products", "rank product title units revenue share running", goods(products, revenue, units)),
            table("customers", "rank customer name sessions events revenue", people(customers, spent, sessions)),
        ]
    )


def read(text: str) -> tuple[dict[str, list[str]], dict[str, list[str]], dict[str, list[int]], list[Event]]:
    tables: dict[str, dict[str, list[str]]] = {"customers": {}, "products": {}}
    rejected: dict[str, list[int]] = defaultdict(list)
    lines: list[tuple[int, list[str]]] = []
    section = ""
    for number, line in enumerate(text.split("\n"), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        if found := re.fullmatch(r"\[(\w+)\]", line):
            section = found[1]
        elif section == "events":
            lines.append((number, [field.strip() for field in line.split("|")]))
        elif section in tables:
            key, *rest = (field.strip() for field in line.split("|"))
            if len(rest) == 3:
                tables[section][key] = rest
    customers, products = tables["customers"], tables["products"]
    events: list[tuple[int, int, Event]] = []
    ids: set[str] = set()
    for number, fields in lines:
        reason = fault(fields, customers, products, ids)
        if reason:
            rejected[reason].append(number)
            continue
        name, time, customer, action, product, quantity = fields
        ids.add(name)
        since = datetime.fromisoformat(time) - EPOCH
        seconds = since.days * 86400 + since.seconds
        amount = SIGN[action] * int(quantity) * int(products[product][2])
        events.append((seconds, number, (seconds, customer, action, product, int(quantity), amount)))
    return customers, products, rejected, [event for _, _, event in sorted(events)]


def fault(fields: list[str], customers: dict[str, list[str]], products: dict[str, list[str]], ids: set[str]) -> str:
    if len(fields) != 6:
        return "fields"
    name, time, customer, action, product, quantity = fields
    try:
        datetime.fromisoformat(time if TIME.fullmatch(time) else "no time")
    except ValueError:
        return "time"
    checks = {
        "action": action in SIGN,
        "quantity": QUANTITY.fullmatch(quantity) is not None,
        "customer": customer in customers,
        "product": product in products,
        "repeated": name not in ids,
    }
    return next((reason for reason, holds in checks.items() if not holds), "")


def rejects(rejected: dict[str, list[int]]) -> list[Row]:
    ranked = sorted(rejected.items(), key=lambda item: (-len(item[1]), item[0]))
    return [(reason, str(len(lines)), " ".join(map(str, lines[:3]))) for reason, lines in ranked]


def totals(events: list[Event], customers: dict[str, list[str]], products: dict[str, list[str]]) -> list[Row]:
    groups: dict[tuple[str, str], list[Event]] = defaultdict(list)
    for event in events:
        groups[customers[event[1]][1], products[event[3]][1]].append(event)
    rows = []
    for group, members in sorted(groups.items()):
        amounts = sorted(event[5] for event in members if event[2] == "buy")
        units = sum(event[4] for event in members if event[2] == "buy")
        middle = money(amounts[(len(amounts) - 1) // 2]) if amounts else "-"
        tenth = money(amounts[(9 * len(amounts) + 9) // 10 - 1]) if amounts else "-"
        rows.append((*group, len(members), units, money(sum(event[5] for event in members)), middle, tenth))
    return rows


def hours(events: list[Event]) -> list[Row]:
    rows: list[Row] = []
    steps: dict[int, list[Event]] = defaultdict(list)
    for event in events:
        steps[event[0] // 600].append(event)
    if not events:
        return []
    for step in range(events[0][0] // 600, events[-1][0] // 600 + 1):
        inside = [event for number in range(step, step + 6) for event in steps.get(number, ())]
        if not inside:
            continue
        units: Counter[str] = Counter()
        for event in inside:
            if event[2] == "buy":
                units[event[3]] += event[4]
        busiest = min(units, key=lambda product: (-units[product], product)) if units else "-"
        start = (EPOCH + timedelta(seconds=600 * step)).strftime("%Y-%m-%d %H:%M")
        people = len({event[1] for event in inside})
        rows.append((start, len(inside), people, money(sum(event[5] for event in inside)), busiest))
    return rows


def split(events: list[Event]) -> dict[str, list[list[Event]]]:
    """Sessions by customer: events at most half an hour apart."""
    sessions: dict[str, list[list[Event]]] = {}
    for event in events:
        own = sessions.setdefault(event[1], [])
        if own and event[0] - own[-1][-1][0] <= 1800:
            own[-1].append(event)
        else:
            own.append([event])
    return sessions


def histogram(sessions: dict[str, list[list[Event]]]) -> list[Row]:
    rows = {name: [0, 0, 0] for name in CLASSES}
    for session in (session for own in sessions.values() for session in own):
        row = rows[CLASSES[min(4, len(session).bit_length() - 1)]]
        row[0] += 1
        row[1] += len(session)
        row[2] = max(row[2], session[-1][0] - session[0][0])
    return [(name, *row) for name, row in rows.items()]


def together(sessions: dict[str, list[list[Event]]]) -> list[Row]:
    pairs: Counter[tuple[str, str]] = Counter()
    for session in (session for own in sessions.values() for session in own):
        pairs.update(combinations(sorted({event[3] for event in session if event[2] == "buy"}), 2))
    ranked = sorted(pairs.items(), key=lambda item: (-item[1], item[0]))
    return [(one, other, count) for (one, other), count in ranked[:15]]


def conversions(events: list[Event], customers: dict[str, list[str]]) -> list[Row]:
    seen: set[tuple[str, str]] = set()
    rows: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for _, customer, action, product, _, _ in events:
        if action == "view":
            seen.add((customer, product))
        elif action == "buy":
            row = rows[customers[customer][2]]
            row[0] += 1
            row[1] += (customer, product) in seen
    return [(plan, *row) for plan, row in sorted(rows.items())]


def goods(products: dict[str, list[str]], revenue: Counter[str], units: Counter[str]) -> list[Row]:
    ranked = sorted(products, key=lambda key: (-revenue[key], key))
    total = sum(value for value in revenue.values() if value > 0)
    rows: list[Row] = []
    running = rank = 0
    for place, key in enumerate(ranked, 1):
        if place == 1 or revenue[key] != revenue[ranked[place - 2]]:
            rank = place
        running += max(0, revenue[key])
        share = [max(0, revenue[key]) * 1000 // total, running * 1000 // total] if total else [0, 0]
        rows.append((rank, key, products[key][0], units[key], money(revenue[key]), *share))
    return rows


def people(customers: dict[str, list[str]], spent: Counter[str], sessions: dict[str, list[list[Event]]]) -> list[Row]:
    levels = sorted({spent[key] for key in sessions}, reverse=True)
    rank = {value: place for place, value in enumerate(levels, 1)}
    ranked = sorted(sessions, key=lambda key: (rank[spent[key]], key))[:20]
    return [
        (rank[spent[key]], key, customers[key][0], len(sessions[key]), sum(map(len, sessions[key])), money(spent[key]))
        for key in ranked
    ]


def money(cents: int) -> str:
    return f"{'-' if cents < 0 else ''}{abs(cents) // 100:,}.{abs(cents) % 100:02}"


def table(title: str, header: str | list[str], rows: list[Row]) -> str:
    names = header.split() if isinstance(header, str) else header
    every = [names, *rows]
    widths = [max(len(str(row[column])) for row in every) for column in range(len(names))]
    lines = [
        "  ".join(
            str(cell).rjust(width) if isinstance(cell, int) else str(cell).ljust(width)
            for cell, width in zip(row, widths, strict=True)
        ).rstrip(" ")
        for row in every
    ]
    return f"== {title}\n" + "".join(f"{line}\n" for line in lines) + "\n"
