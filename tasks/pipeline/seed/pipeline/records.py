# The form in which all modules hand events to each other.

import copy
from datetime import datetime

START = datetime(2000, 1, 1)


class Record:
    def __init__(self, fields):
        self.fields = fields

    def text(self, name):
        return self.fields[name]

    def number(self, name):
        return int(self.fields[name])

    def seconds(self):
        return seconds_of(self.fields["time"])

    def with_fields(self, **more):
        other = Record(copy.deepcopy(self.fields))
        for name in more:
            other.fields[name] = str(more[name])
        return other

    def is_action(self, action):
        return self.fields["action"] == action

    def amount(self):
        price = self.number("price")
        if self.is_action("buy"):
            return price * self.number("quantity")
        if self.is_action("return"):
            return -price * self.number("quantity")
        return 0


def seconds_of(time):
    since = datetime.fromisoformat(time) - START
    return since.days * 86400 + since.seconds


def by_time(records):
    # the order of the input decides between events of the same second
    numbered = [(record.seconds(), record.number("line"), record) for record in records]
    return [record for _, _, record in sorted(numbered, key=lambda entry: (entry[0], entry[1]))]
