# The report of a shop: reads its text from stdin and writes tables to stdout.

import sys

from pipeline import aggregation, catalogue, formatting, joining, parsing, ranking, sessions, validation, windows
from pipeline.formatting import clock, money


def report(text):
    rows = parsing.read(text)
    customers = catalogue.customers(rows["customers"])
    products = catalogue.products(rows["products"])
    accepted, rejected = validation.validate(rows["events"], customers, products)
    records = joining.join(accepted, customers, products)
    grouped = sessions.sessions(records)
    parts = [
        formatting.table("rejected", ["reason", "lines", "first"], validation.summary(rejected)),
        formatting.table(
            "totals",
            ["region", "category", "events", "units", "revenue", "median", "tenth"],
            [
                [region, category, events, units, money(revenue), money(middle), money(tenth)]
                for region, category, events, units, revenue, middle, tenth in aggregation.totals(records)
            ],
        ),
        formatting.table(
            "hours",
            ["from", "events", "customers", "revenue", "busiest"],
            [
                [clock(start), events, people, money(revenue), busiest]
                for start, events, people, revenue, busiest in windows.windows(records)
            ],
        ),
        formatting.table("sessions", ["events", "sessions", "together", "longest"], sessions.histogram(grouped)),
        formatting.table("bought together", ["one", "other", "sessions"], sessions.pairs(grouped)),
        formatting.table("conversions", ["plan", "buys", "seen before"], sessions.conversions(records)),
        formatting.table(
            "products",
            ["rank", "product", "title", "units", "revenue", "share", "running"],
            [
                [rank, key, title, units, money(revenue), share, running]
                for rank, key, title, units, revenue, share, running in ranking.product_ranks(records, products)
            ],
        ),
        formatting.table(
            "customers",
            ["rank", "customer", "name", "sessions", "events", "revenue"],
            [
                [rank, key, name, count, events, money(revenue)]
                for rank, key, name, count, events, revenue in ranking.customer_ranks(records, customers, grouped)
            ],
        ),
    ]
    return "".join(parts)


if __name__ == "__main__":
    sys.stdout.write(report(sys.stdin.read()))
