# Customers and products, found by their names.

from pipeline.cache import cached


class Catalogue:
    def __init__(self, rows, names):
        self.names = names
        self.rows = [dict(zip(names, fields)) for _, fields in rows if len(fields) == len(names)]
        self.find = cached(self.look_up)

    def look_up(self, key):
        found = [row for row in self.rows if row[self.names[0]] == key]
        return found[-1] if found else None

    def has(self, key):
        return self.find(key) is not None

    def value(self, key, name):
        return self.find(key)[name]

    def keys(self):
        keys = []
        for row in self.rows:
            if row[self.names[0]] not in keys:
                keys.append(row[self.names[0]])
        return sorted(keys)


def customers(rows):
    return Catalogue(rows, ["customer", "name", "region", "plan"])


def products(rows):
    return Catalogue(rows, ["product", "title", "category", "price"])
