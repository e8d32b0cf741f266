import east
import north
import south
import west


def settings():
    return {module.__name__: [value for name, value in sorted(vars(module).items()) if len(name) == 1]
            for module in (north, east, south, west)}
