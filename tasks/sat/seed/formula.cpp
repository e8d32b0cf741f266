#include "formula.h"

#include <algorithm>
#include <set>

Formula::Formula(int variables) : variables_(variables) {}

void Formula::add(const Literals& clause) {
    for (Literal literal : clause) {
        if (variable_of(literal) > variables_) {
            variables_ = variable_of(literal);
        }
    }
    clauses_.push_back(clause);
}

bool Formula::is_satisfied_by(const std::vector<bool>& values) const {
    for (const Literals& clause : clauses_) {
        bool satisfied = false;
        for (Literal literal : clause) {
            if (values[variable_of(literal)] == is_positive(literal)) {
                satisfied = true;
            }
        }
        if (!satisfied) {
            return false;
        }
    }
    return true;
}

std::vector<int> Formula::occurrences() const {
    std::vector<int> counts(slots_for(variables_), 0);
    for (const Literals& clause : clauses_) {
        for (Literal literal : clause) {
            ++counts[slot_of(literal)];
        }
    }
    return counts;
}

int Formula::longest_clause() const {
    std::size_t longest = 0;
    for (const Literals& clause : clauses_) {
        longest = std::max(longest, clause.size());
    }
    return static_cast<int>(longest);
}

Literals without_repetitions(const Literals& clause) {
    std::set<Literal> unique(clause.begin(), clause.end());
    return Literals(unique.begin(), unique.end());
}

bool is_tautology(const Literals& clause) {
    std::set<Literal> seen;
    for (Literal literal : clause) {
        if (seen.count(opposite(literal))) {
            return true;
        }
        seen.insert(literal);
    }
    return false;
}
