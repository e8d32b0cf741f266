# Events together with what is known of their customers and products.

from pipeline.records import by_time


def join(records, customers, products):
    joined = []
    for record in records:
        key = record.text("product")
        wider = record.with_fields(category=products.value(key, "category"), price=products.value(key, "price"))
        key = record.text("customer")
        wider = wider.with_fields(region=customers.value(key, "region"), plan=customers.value(key, "plan"))
        joined.append(wider)
    return by_time(joined)
