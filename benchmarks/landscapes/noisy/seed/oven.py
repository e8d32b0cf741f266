import recipe


def amounts():
    return [value for name, value in sorted(vars(recipe).items()) if name.isupper()]
