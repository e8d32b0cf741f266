# Events of a customer that follow each other closely, and what is bought together in them.

from pipeline.records import by_time

GAP = 1800
CLASSES = [(1, "1"), (3, "2-3"), (7, "4-7"), (15, "8-15")]
PAIRS = 15


def sessions_of(records, customer):
    own = by_time([record for record in records if record.text("customer") == customer])
    found = []
    for record in own:
        if found and record.seconds() - found[-1][-1].seconds() <= GAP:
            found[-1] = found[-1] + [record]
        else:
            found.append([record])
    return found


def sessions(records):
    customers = sorted({record.text("customer") for record in records})
    return {customer: sessions_of(records, customer) for customer in customers}


def duration(session):
    times = [record.seconds() for record in by_time(session)]
    return times[-1] - times[0]


def class_of(session):
    for most, name in CLASSES:
        if len(session) <= most:
            return name
    return "16+"


def histogram(grouped):
    names = [name for _, name in CLASSES] + ["16+"]
    every = [session for customer in grouped for session in grouped[customer]]
    rows = []
    for name in names:
        chosen = [session for session in every if class_of(session) == name]
        longest = max([duration(session) for session in chosen], default=0)
        rows.append((name, len(chosen), sum(len(session) for session in chosen), longest))
    return rows


def bought(session):
    products = []
    for record in session:
        if record.is_action("buy") and record.text("product") not in products:
            products.append(record.text("product"))
    return sorted(products)


def pairs(grouped):
    every = [bought(session) for customer in grouped for session in grouped[customer]]
    counted = {}
    for products in every:
        for one in products:
            for other in products:
                if one < other and (one, other) not in counted:
                    counted[one, other] = len([basket for basket in every if one in basket and other in basket])
    ranked = sorted(counted.items(), key=lambda entry: (-entry[1], entry[0]))
    return [(one, other, count) for (one, other), count in ranked[:PAIRS]]


def conversions(records):
    # buys of something that the same customer had looked at before
    ordered = by_time(records)
    rows = {}
    for position, record in enumerate(ordered):
        if not record.is_action("buy"):
            continue
        plan = record.text("plan")
        buys, converted = rows.get(plan, (0, 0))
        seen = [
            other
            for other in ordered[:position]
            if other.text("customer") == record.text("customer")
            and other.text("product") == record.text("product")
            and other.is_action("view")
        ]
        rows[plan] = (buys + 1, converted + (1 if seen else 0))
    return [(plan, *rows[plan]) for plan in sorted(rows)]
