"""Three simulated plants: gains that are too small are slow, those that are too large are unstable."""

from collections import deque

PLANTS = {"fast": (0.9, 0.35, 1), "slow": (0.2, 0.03, 1), "late": (0.4, 0.08, 4)}
"""What heat brings, what is lost to the outside, and after how many steps heat arrives."""
INVOLVED = {name: (f"{name.upper()}_GAIN", f"{name.upper()}_REST", "DAMPING") for name in PLANTS}


def parts(names):
    """What the controller is worth for each plant."""
    return {name: 1 / (1 + 3 * error(names["power"], name, *plant)) for name, plant in PLANTS.items()}


def error(power, name, warms, loses, delay):
    """The mean absolute error."""
    temperature, last, total, errors = 0.0, 0.0, 0.0, 0.0
    arriving = deque([0.0] * delay)
    for _ in range(60):
        off = 1 - temperature
        total = max(-20.0, min(20.0, total + off))
        arriving.append(max(0.0, min(2.0, power(name, off, temperature - last, total))))
        last = temperature
        temperature += warms * arriving.popleft() - loses * temperature
        errors += abs(1 - temperature)
    return errors / 60
