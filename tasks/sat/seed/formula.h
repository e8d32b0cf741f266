// A formula in conjunctive normal form, as it is read from a file.

#pragma once

#include <vector>

#include "literal.h"

class Formula {
  public:
    Formula() = default;
    explicit Formula(int variables);

    int variables() const { return variables_; }
    int size() const { return static_cast<int>(clauses_.size()); }
    const std::vector<Literals>& clauses() const { return clauses_; }

    // Add a clause; variables that are new are taken in.
    void add(const Literals& clause);

    // Whether a complete assignment, with one truth value for each variable, makes all clauses true.
    bool is_satisfied_by(const std::vector<bool>& values) const;

    // How often each literal occurs, by its slot.
    std::vector<int> occurrences() const;

    // The length of the longest clause.
    int longest_clause() const;

  private:
    int variables_ = 0;
    std::vector<Literals> clauses_;
};

// What is left of a clause when repeated literals are removed, in rising order.
Literals without_repetitions(const Literals& clause);

// Whether a clause holds a literal and its opposite, so that it is always true.
bool is_tautology(const Literals& clause);
