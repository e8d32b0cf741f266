"""Families of formulas: each function draws one; whether it has a solution is for solvers to find out."""

import itertools
import random
from collections.abc import Iterable, Sequence


class Formula:
    """A formula in conjunctive normal form. Literals are numbers as in DIMACS files."""

    def __init__(self, variables: int = 0) -> None:
        self.variables = variables
        self.clauses: list[tuple[int, ...]] = []

    def new(self) -> int:
        self.variables += 1
        return self.variables

    def some(self, count: int) -> list[int]:
        return [self.new() for _ in range(count)]

    def add(self, *literals: int) -> None:
        self.clauses.append(literals)

    def at_most_one(self, literals: Sequence[int]) -> None:
        for one, other in itertools.combinations(literals, 2):
            self.add(-one, -other)

    def exactly_one(self, literals: Sequence[int]) -> None:
        self.add(*literals)
        self.at_most_one(literals)

    def parity(self, literals: Sequence[int], odd: bool) -> None:
        """An odd or even number of the literals is true."""
        for signs in itertools.product((1, -1), repeat=len(literals)):
            if (signs.count(-1) % 2 == 1) != odd:  # the assignment that this clause forbids has the wrong parity
                self.add(*(sign * literal for sign, literal in zip(signs, literals, strict=True)))

    def conjunction(self, one: int, other: int) -> int:
        output = self.new()
        self.add(-output, one)
        self.add(-output, other)
        self.add(output, -one, -other)
        return output

    def disjunction(self, one: int, other: int) -> int:
        return -self.conjunction(-one, -other)

    def exclusive(self, one: int, other: int) -> int:
        output = self.new()
        self.parity([one, other, output], odd=False)
        return output

    def choice(self, condition: int, then: int, otherwise: int) -> int:
        output = self.new()
        self.add(-condition, -then, output)
        self.add(-condition, then, -output)
        self.add(condition, -otherwise, output)
        self.add(condition, otherwise, -output)
        return output

    def text(self) -> bytes:
        lines = [f"p cnf {self.variables} {len(self.clauses)}"]
        lines += [" ".join(map(str, (*clause, 0))) for clause in self.clauses]
        return "\n".join(lines).encode() + b"\n"


def renamed(formula: Formula, rng: random.Random) -> Formula:
    """The same formula with other names and signs of its variables, its clauses and literals in another order."""
    names = list(range(1, formula.variables + 1))
    rng.shuffle(names)
    names = [0, *(name * rng.choice((1, -1)) for name in names)]
    other = Formula(formula.variables)
    for clause in formula.clauses:
        literals = [names[literal] if literal > 0 else -names[-literal] for literal in clause]
        rng.shuffle(literals)
        other.add(*literals)
    rng.shuffle(other.clauses)
    return other


def threshold(variables: int, rng: random.Random) -> Formula:
    """Random clauses of three literals, as many as leave a solution in about half of the cases."""
    formula = Formula(variables)
    for _ in range(round(4.26 * variables + 6.24)):
        formula.add(*(rng.choice((1, -1)) * variable for variable in rng.sample(range(1, variables + 1), 3)))
    return formula


def pigeonhole(holes: int, rng: random.Random) -> Formula:
    """One pigeon more than holes, one hole for each; a tenth of the pairs beside that may not be used."""
    formula = Formula()
    places = [formula.some(holes) for _ in range(holes + 1)]
    for pigeon in places:
        formula.add(*pigeon)
    for hole in zip(*places, strict=True):
        formula.at_most_one(hole)
    for pigeon in rng.sample(places, holes // 3):
        formula.add(-rng.choice(pigeon))
    return formula


def colouring(vertices: int, edges: int, colours: int, rng: random.Random) -> Formula:
    """Colours for the vertices of a random graph, such that neighbours differ."""
    formula = Formula()
    colour = [formula.some(colours) for _ in range(vertices)]
    for choices in colour:
        formula.exactly_one(choices)
    for one, other in rng.sample(list(itertools.combinations(range(vertices), 2)), edges):
        for a, b in zip(colour[one], colour[other], strict=True):
            formula.add(-a, -b)
    return formula


def tseitin(vertices: int, rng: random.Random) -> Formula:
    """A cubic graph with a bit on each edge and an odd sum at one vertex: no solution, as all sums add up to even."""
    formula = Formula()
    incident: list[list[int]] = [[] for _ in range(vertices)]
    for one, other in cubic(vertices, rng):
        edge = formula.new()
        incident[one].append(edge)
        incident[other].append(edge)
    for vertex, edges in enumerate(incident):
        formula.parity(edges, odd=vertex == 0)
    return formula


def cubic(vertices: int, rng: random.Random) -> list[tuple[int, int]]:
    """A random graph without loops or double edges, three edges at each vertex."""
    while True:
        ends = [vertex for vertex in range(vertices) for _ in range(3)]
        rng.shuffle(ends)
        edges = [(min(pair), max(pair)) for pair in zip(ends[::2], ends[1::2], strict=True)]
        if len(set(edges)) == len(edges) and all(one != other for one, other in edges):
            return edges


def multiplication(formula: Formula, left: Sequence[int], right: Sequence[int]) -> list[int]:
    """The bits of a product, the lowest first: rows of partial products, added one after the other."""
    total: list[int] = []
    for shift, factor in enumerate(right):
        row = [formula.conjunction(bit, factor) for bit in left]
        if shift == 0:
            total = row
            continue
        upper, carry = total[shift:], 0
        added = []
        for place, bit in enumerate(row):
            inputs = [bit, *upper[place : place + 1], *([carry] if carry else [])]
            digit, carry = sum_of(formula, inputs)
            added.append(digit)
        total = [*total[:shift], *added, *([carry] if carry else [])]
    return total


def sum_of(formula: Formula, inputs: Sequence[int]) -> tuple[int, int]:
    """The sum of one to three bits, and the carry, 0 if there is none."""
    if len(inputs) == 1:
        return inputs[0], 0
    one, other, *third = inputs
    digit, carry = formula.exclusive(one, other), formula.conjunction(one, other)
    if not third:
        return digit, carry
    return formula.exclusive(digit, third[0]), formula.disjunction(carry, formula.conjunction(digit, third[0]))


def commutes(bits: int, low: int, rng: random.Random) -> Formula:
    """Two circuits that multiply, one with its factors exchanged, and a product of which the two say different things.

    `low` of the upper bits of the first factor are fixed, so that sizes between two numbers of bits can be had.
    """
    formula = Formula()
    left, right = formula.some(bits), formula.some(bits)
    one, other = multiplication(formula, left, right), multiplication(formula, right, left)
    formula.add(*(formula.exclusive(a, b) for a, b in zip(one, other, strict=True)))
    for bit in left[bits - low :]:
        formula.add(rng.choice((1, -1)) * bit)
    return formula


def factors(bits: int, rng: random.Random) -> Formula:
    """Two factors above 1 of the product of two primes of so many bits."""
    primes = [n for n in range(2 ** (bits - 1), 2**bits) if all(n % d for d in range(2, int(n**0.5) + 1))]
    product = rng.choice(primes) * rng.choice(primes)
    formula = Formula()
    left, right = formula.some(bits), formula.some(bits)
    digits = multiplication(formula, left, right)
    for place, digit in enumerate(digits):
        formula.add(digit if product >> place & 1 else -digit)
    for factor in (left, right):
        formula.add(*factor[1:])
    return formula


def machine(bits: int, steps: int, rng: random.Random) -> Formula:
    """A random machine with one input a step: which inputs lead from the state of zeros to one drawn at random?

    Each bit of the next state is an exclusive or of a bit, and of a choice or a conjunction of others.
    """
    formula = Formula()
    wiring = [(rng.sample(range(bits), 4), rng.random() < 0.5) for _ in range(bits)]
    state = formula.some(bits)
    for bit in state:
        formula.add(-bit)
    for _ in range(steps):
        given = formula.new()
        following = []
        for number, ((a, b, c, d), chooses) in enumerate(wiring):
            mixed = (
                formula.choice(state[b], state[c], state[d]) if chooses else formula.conjunction(state[b], -state[c])
            )
            bit = formula.exclusive(state[a], mixed)
            following.append(formula.exclusive(bit, given) if number % 5 == 0 else bit)
        state = following
    for bit in state:
        formula.add(rng.choice((1, -1)) * bit)
    return formula


def robots(side: int, count: int, steps: int, rng: random.Random) -> Formula:
    """A plan: robots on a grid with some walls, each with a goal in reach, must not meet nor exchange places."""
    cells = [(row, column) for row in range(side) for column in range(side)]
    while True:
        walls = rng.sample(cells, side * side // 8)
        free = [cell for cell in cells if cell not in walls]
        starts, goals = rng.sample(free, count), rng.sample(free, count)
        if all(goal in reachable(start, steps, free) for start, goal in zip(starts, goals, strict=True)):
            break
    formula = Formula()
    at = [[{cell: formula.new() for cell in free} for _ in range(steps + 1)] for _ in range(count)]
    for robot in range(count):
        formula.add(at[robot][0][starts[robot]])
        formula.add(at[robot][steps][goals[robot]])
        for places in at[robot]:
            formula.exactly_one(list(places.values()))
        for now, then in itertools.pairwise(at[robot]):
            for cell in free:
                formula.add(-now[cell], *(then[near] for near in nearby(cell, free)))
    for one, other in itertools.combinations(at, 2):
        for step in range(steps + 1):
            for cell in free:
                formula.add(-one[step][cell], -other[step][cell])
        for step in range(steps):
            for cell in free:
                for near in nearby(cell, free):
                    if near != cell:
                        swapped = (one[step][cell], other[step][near], one[step + 1][near], other[step + 1][cell])
                        formula.add(*(-literal for literal in swapped))
    return formula


def reachable(cell: tuple[int, int], steps: int, free: Sequence[tuple[int, int]]) -> set[tuple[int, int]]:
    cells = {cell}
    for _ in range(steps):
        cells = {near for reached in cells for near in nearby(reached, free)}
    return cells


def nearby(cell: tuple[int, int], free: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    row, column = cell
    around = {(row, column), (row + 1, column), (row - 1, column), (row, column + 1), (row, column - 1)}
    return [other for other in free if other in around]
