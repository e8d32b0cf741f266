S = 0

T = 0

U = 0

V = 0

W = 0

X = 0

Y = 0

Z = 0
