# EVOLVE-BLOCK-START
VALUE = 1.0
WEIGHT = 0.0
VOLUME = 0.0
AGE = 0.0
PAIRED = 0.0


def rank(value, weight, volume, age, paired):
    return VALUE * value - WEIGHT * weight - VOLUME * volume - AGE * age * age + PAIRED * paired
# EVOLVE-BLOCK-END
