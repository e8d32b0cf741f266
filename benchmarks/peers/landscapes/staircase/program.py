# EVOLVE-BLOCK-START
A = 0.5
B = 0.5
C = 0.5
D = 0.5
E = 0.5
F = 0.5
G = 0.5
H = 0.5


def dials():
    return [A, B, C, D, E, F, G, H]
# EVOLVE-BLOCK-END
