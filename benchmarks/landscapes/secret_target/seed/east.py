E = 0

F = 0

G = 0

H = 0
