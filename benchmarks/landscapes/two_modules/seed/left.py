A = 0

B = 0

C = 0

D = 0

E = 0

F = 0

G = 0

H = 0
