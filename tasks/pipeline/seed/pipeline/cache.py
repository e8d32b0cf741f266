# Keeps the last results of functions that are asked the same again and again.

SIZE = 48


class Cache:
    def __init__(self, function):
        self.function = function
        self.entries = []

    def __call__(self, *arguments):
        key = repr(arguments)
        for position, (other, result) in enumerate(self.entries):
            if other == key:
                self.entries = [(other, result)] + self.entries[:position] + self.entries[position + 1 :]
                return result
        result = self.function(*arguments)
        self.entries = [(key, result)] + self.entries[: SIZE - 1]
        return result


def cached(function):
    return Cache(function)
