// The partial assignment of the search: which variables have values, in which order they got them, and why.

#pragma once

#include <vector>

#include "clause.h"
#include "literal.h"

enum class Value { unassigned, yes, no };

class Trail {
  public:
    explicit Trail(int variables);

    int variables() const { return variables_; }
    int size() const { return static_cast<int>(literals_.size()); }
    int level() const { return static_cast<int>(level_starts_.size()); }
    bool is_complete() const { return size() == variables_; }

    Value value(Literal literal) const;
    bool is_true(Literal literal) const { return value(literal) == Value::yes; }
    bool is_false(Literal literal) const { return value(literal) == Value::no; }
    bool is_assigned(Variable variable) const;

    // The level at which a variable got its value, and the clause that forced it (NO_CLAUSE: a decision).
    int level_of(Variable variable) const;
    ClauseId reason_of(Variable variable) const;

    Literal at(int position) const { return literals_[position]; }
    const Literals& literals() const { return literals_; }

    // Whether a clause is the reason of a value, so that it must not be removed.
    bool is_reason(ClauseId id, const Clause& clause) const;

    // Begin a new level; the next literal that is assigned is its decision.
    void open_level();

    // Make a literal true at the present level.
    void assign(Literal literal, ClauseId reason);

    // Take back all values above a level. Returns the literals taken back, the latest first.
    Literals back_to(int level);

    // The model: one truth value for each variable, those without a value are false.
    std::vector<bool> model() const;

  private:
    struct Entry {
        Value value = Value::unassigned;  // of the positive literal
        int level = -1;
        ClauseId reason = NO_CLAUSE;
    };

    int variables_;
    std::vector<Entry> entries_;
    Literals literals_;
    std::vector<int> level_starts_;
};
