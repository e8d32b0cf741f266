// Which variable gets a value next, and which value.

#pragma once

#include <vector>

#include "formula.h"
#include "literal.h"
#include "options.h"
#include "trail.h"

// Activities of variables: those that conflicts are about have more of it, and those of the past less.
class Activities {
  public:
    Activities(int variables, const Options& options);

    void bump(Variable variable);
    void after_conflict();
    double of(Variable variable) const { return values_.at(variable); }

  private:
    const Options& options_;
    std::vector<double> values_;
    long long conflicts_ = 0;
};

// Values that variables get when they are decided: those that make more clauses of the formula true.
class Polarities {
  public:
    explicit Polarities(const Formula& formula);

    Literal preferred(Variable variable) const;

  private:
    std::vector<bool> positive_;
};

class Heuristics {
  public:
    Heuristics(const Formula& formula, const Options& options);

    // The literal to be made true next; at least one variable must be without a value.
    Literal decide(const Trail& trail) const;

    // Take in what a conflict was about.
    void learn_from(const Literals& learned, const std::vector<Variable>& involved);

    // Take in that literals lost their values.
    void taken_back(const Literals& literals);

  private:
    const Options& options_;
    Activities activities_;
    Polarities polarities_;
};
