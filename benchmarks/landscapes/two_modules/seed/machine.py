import left
import right


def settings():
    return {module.__name__: [value for name, value in sorted(vars(module).items()) if len(name) == 1]
            for module in (left, right)}
