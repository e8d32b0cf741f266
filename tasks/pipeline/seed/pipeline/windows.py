# What happened in each hour, every ten minutes.

WIDTH = 3600
STEP = 600


def starts(records):
    if not records:
        return []
    first = min(record.seconds() for record in records)
    last = max(record.seconds() for record in records)
    return list(range(first - first % STEP, last + 1, STEP))


def inside(records, start):
    return [record for record in records if start <= record.seconds() < start + WIDTH]


def busiest(records):
    units = {}
    for record in records:
        if record.is_action("buy"):
            units[record.text("product")] = units.get(record.text("product"), 0) + record.number("quantity")
    if not units:
        return "-"
    return sorted(units, key=lambda product: (-units[product], product))[0]


def windows(records):
    rows = []
    for start in starts(records):
        events = inside(records, start)
        if not events:
            continue
        customers = []
        for record in events:
            if record.text("customer") not in customers:
                customers.append(record.text("customer"))
        revenue = sum(record.amount() for record in events)
        rows.append((start, len(events), len(customers), revenue, busiest(events)))
    return rows
