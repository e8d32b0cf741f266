# EVOLVE-BLOCK-START
FAST_GAIN = 1.0
FAST_REST = 0.0
SLOW_GAIN = 1.0
SLOW_REST = 0.0
LATE_GAIN = 1.0
LATE_REST = 0.0
DAMPING = 0.0


def power(plant, error, drift, total):
    gain, rest = {"fast": (FAST_GAIN, FAST_REST), "slow": (SLOW_GAIN, SLOW_REST), "late": (LATE_GAIN, LATE_REST)}[plant]
    return gain * error + rest * total - DAMPING * drift
# EVOLVE-BLOCK-END
