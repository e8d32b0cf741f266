M = 0

N = 0

O = 0

P = 0
