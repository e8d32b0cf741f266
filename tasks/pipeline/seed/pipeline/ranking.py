# Products and customers by revenue.

CUSTOMERS = 20


def revenue_of(records, name, key):
    return sum(record.amount() for record in records if record.text(name) == key)


def units_of(records, key):
    return sum(record.number("quantity") for record in records if record.text("product") == key and record.is_action("buy"))


def product_ranks(records, products):
    keys = products.keys()
    revenues = [(key, revenue_of(records, "product", key)) for key in keys]
    total = sum(revenue for _, revenue in revenues if revenue > 0)
    rows = []
    for key, revenue in revenues:
        rank = 1 + len([other for _, other in revenues if other > revenue])
        above = sum(other for name, other in revenues if other > 0 and (-other, name) <= (-revenue, key))
        share = max(revenue, 0) * 1000 // total if total else 0
        running = above * 1000 // total if total else 0
        rows.append((rank, key, products.value(key, "title"), units_of(records, key), revenue, share, running))
    return sorted(rows, key=lambda row: (row[0], row[1]))


def customer_ranks(records, customers, grouped):
    revenues = [(customer, revenue_of(records, "customer", customer)) for customer in grouped]
    rows = []
    for customer, revenue in revenues:
        rank = 1 + len({other for _, other in revenues if other > revenue})
        events = sum(len(session) for session in grouped[customer])
        rows.append((rank, customer, customers.value(customer, "name"), len(grouped[customer]), events, revenue))
    return sorted(rows, key=lambda row: (row[0], row[1]))[:CUSTOMERS]
