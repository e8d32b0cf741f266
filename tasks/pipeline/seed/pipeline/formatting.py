# Tables of text, with columns as wide as their widest cell.

from datetime import timedelta

from pipeline.cache import cached
from pipeline.records import START


@cached
def money(cents):
    if cents is None:
        return "-"
    digits = str(abs(cents))
    while len(digits) < 3:
        digits = "0" + digits
    whole, rest = digits[:-2], digits[-2:]
    grouped = ""
    for position, digit in enumerate(reversed(whole)):
        if position and position % 3 == 0:
            grouped = "," + grouped
        grouped = digit + grouped
    return ("-" if cents < 0 else "") + grouped + "." + rest


@cached
def clock(seconds):
    return (START + timedelta(seconds=seconds)).strftime("%Y-%m-%d %H:%M")


def width(rows, column):
    return max(len(str(row[column])) for row in rows)


def line(row, rows):
    text = ""
    for column, cell in enumerate(row):
        if column:
            text = text + "  "
        padding = width(rows, column) - len(str(cell))
        if isinstance(cell, int):
            text = text + " " * padding + str(cell)
        else:
            text = text + str(cell) + " " * padding
    while text.endswith(" "):
        text = text[:-1]
    return text


def table(title, header, rows):
    every = [header, *rows]
    text = "== " + title + "\n"
    for row in every:
        text = text + line(row, every) + "\n"
    return text + "\n"
