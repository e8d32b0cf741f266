I = 0

J = 0

K = 0

L = 0
