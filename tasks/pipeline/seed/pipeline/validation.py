# Which events are accepted, and why the others are not.

import re
from datetime import datetime

from pipeline.records import Record

NAMES = ["id", "time", "customer", "action", "product", "quantity"]
ACTIONS = ["view", "buy", "return"]


def is_time(text):
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}", text):
        return False
    try:
        datetime.strptime(text, "%Y-%m-%dT%H:%M:%S")
    except ValueError:
        return False
    return True


def is_quantity(text):
    return re.fullmatch(r"[0-9]{1,2}", text) is not None and int(text) > 0


def reason(fields, customers, products, ids):
    if len(fields) != len(NAMES):
        return "fields"
    event = dict(zip(NAMES, fields))
    if not is_time(event["time"]):
        return "time"
    if event["action"] not in ACTIONS:
        return "action"
    if not is_quantity(event["quantity"]):
        return "quantity"
    if not customers.has(event["customer"]):
        return "customer"
    if not products.has(event["product"]):
        return "product"
    if event["id"] in ids:
        return "repeated"
    return None


def validate(rows, customers, products):
    accepted = []
    rejected = []
    ids = []
    for number, fields in rows:
        why = reason(fields, customers, products, ids)
        if why is None:
            ids = ids + [fields[0]]
            accepted = accepted + [Record(dict(zip([*NAMES, "line"], [*fields, str(number)])))]
        else:
            rejected.append((why, number))
    return accepted, rejected


def summary(rejected):
    reasons = sorted({why for why, _ in rejected})
    rows = []
    for why in reasons:
        lines = [number for other, number in rejected if other == why]
        rows.append([why, str(len(lines)), " ".join(str(number) for number in sorted(lines)[:3])])
    return sorted(rows, key=lambda row: (-int(row[1]), row[0]))
