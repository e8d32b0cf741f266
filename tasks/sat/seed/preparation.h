// Makes the clauses of a formula ready for the search, which wants them without repetitions.

#pragma once

#include <set>
#include <vector>

#include "formula.h"
#include "literal.h"
#include "proof.h"

struct Prepared {
    std::vector<Literals> clauses;  // of two and more literals
    Literals units;                 // literals that must be true
    bool contradictory = false;     // one of the clauses is empty
    int dropped = 0;                // clauses that say nothing new
};

class Preparation {
  public:
    Preparation(const Formula& formula, Proof& proof);

    Prepared prepare();

  private:
    bool says_nothing_new(const Literals& clause) const;
    void take_in(const Literals& clause, Prepared& prepared) const;

    const Formula& formula_;
    Proof& proof_;
    std::set<Literals> seen_;
};
