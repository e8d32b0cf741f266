// Variables and literals, as every part of the solver uses them.
//
// A literal is a number as in DIMACS files: 7 says that variable 7 is true, -7 that it is false. 0 is no literal.

#pragma once

#include <cstddef>
#include <cstdlib>
#include <vector>

using Variable = int;  // from 1 on
using Literal = int;   // a variable, or minus a variable

const Literal NO_LITERAL = 0;

inline Variable variable_of(Literal literal) {
    return std::abs(literal);
}

inline bool is_positive(Literal literal) {
    return literal > 0;
}

inline Literal opposite(Literal literal) {
    return -literal;
}

inline Literal make_literal(Variable variable, bool positive) {
    return positive ? variable : -variable;
}

// The place of a literal in tables with one entry for each literal: 2 and 3 for variable 1, 4 and 5 for variable 2.
inline std::size_t slot_of(Literal literal) {
    return 2 * static_cast<std::size_t>(variable_of(literal)) + (is_positive(literal) ? 0 : 1);
}

// The number of entries in a table with one entry for each literal.
inline std::size_t slots_for(int variables) {
    return 2 * static_cast<std::size_t>(variables) + 2;
}

using Literals = std::vector<Literal>;
