# Reads the text of a shop: the sections with customers and products, and the events.

import re

SECTIONS = ("customers", "products", "events")


def lines_of(text):
    lines = []
    rest = text
    number = 0
    while rest:
        line, _, rest = rest.partition("\n")
        number += 1
        lines.append((number, line))
    return lines


def is_noise(line):
    return re.match(r"^\s*(#.*)?$", line) is not None


def section_of(line):
    found = re.match(r"^\s*\[(\w+)\]\s*$", line)
    return found.group(1) if found else None


def fields_of(line):
    return [re.sub(r"^\s+|\s+$", "", field) for field in line.split("|")]


def section(text, wanted):
    rows = []
    current = None
    for number, line in lines_of(text):
        if is_noise(line):
            continue
        if section_of(line):
            current = section_of(line)
            continue
        if current == wanted:
            rows.append((number, fields_of(line)))
    return rows


def read(text):
    return {name: section(text, name) for name in SECTIONS}
