import blocks


def settings():
    return [list(value) for name, value in sorted(vars(blocks).items()) if name.startswith("B")]
