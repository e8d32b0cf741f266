"""Stands in for AlphaEvolve's records: each takes its fields by name, and gives them as a mapping."""


class Record:
    """A record of any kind."""

    def __init__(self, **fields):
        self.__dict__.update(fields)

    def model_dump(self, **_):
        """Its fields, and those of the records in them."""
        return {name: plain(value) for name, value in self.__dict__.items()}


def plain(value):
    """A value without records."""
    if isinstance(value, Record):
        return value.model_dump()
    return [plain(each) for each in value] if isinstance(value, list | tuple) else value


def __getattr__(name):
    if name.startswith("AlphaEvolve"):
        return type(name, (Record,), {})
    raise AttributeError(f"no {name} stands in for that of alpha_evolve.models")
