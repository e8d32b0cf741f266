# Sums and middle values by region and category.


def nearest_rank(values, tenths):
    if not values:
        return None
    return sorted(values)[(tenths * len(sorted(values)) + 9) // 10 - 1]


def median(values):
    if not values:
        return None
    return sorted(values)[(len(sorted(values)) - 1) // 2]


def groups(records):
    found = []
    for record in records:
        group = (record.text("region"), record.text("category"))
        if group not in found:
            found.append(group)
    return sorted(found)


def members(records, group):
    return [record for record in records if (record.text("region"), record.text("category")) == group]


def totals(records):
    rows = []
    for group in groups(records):
        events = len(members(records, group))
        bought = [record for record in members(records, group) if record.is_action("buy")]
        units = sum(record.number("quantity") for record in bought)
        revenue = sum(record.amount() for record in members(records, group))
        amounts = [record.amount() for record in bought]
        rows.append((*group, events, units, revenue, median(amounts), nearest_rank(amounts, 9)))
    return rows
