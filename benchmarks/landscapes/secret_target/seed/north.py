A = 0

B = 0

C = 0

D = 0
