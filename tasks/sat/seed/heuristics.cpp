#include "heuristics.h"

#include <stdexcept>

Activities::Activities(int variables, const Options& options) : options_(options), values_(variables + 1, 0.0) {}

void Activities::bump(Variable variable) {
    values_.at(variable) += options_.bump_step;
}

void Activities::after_conflict() {
    ++conflicts_;
    if (conflicts_ % options_.decay_interval != 0) {
        return;
    }
    for (double& value : values_) {
        value *= options_.decay_factor;
    }
}

Polarities::Polarities(const Formula& formula) : positive_(formula.variables() + 1, false) {
    std::vector<int> counts = formula.occurrences();
    for (Variable variable = 1; variable <= formula.variables(); ++variable) {
        int positive = counts[slot_of(make_literal(variable, true))];
        int negative = counts[slot_of(make_literal(variable, false))];
        positive_[variable] = positive > negative;
    }
}

Literal Polarities::preferred(Variable variable) const {
    return make_literal(variable, positive_.at(variable));
}

Heuristics::Heuristics(const Formula& formula, const Options& options)
    : options_(options), activities_(formula.variables(), options), polarities_(formula) {
    std::vector<int> counts = formula.occurrences();
    for (Variable variable = 1; variable <= formula.variables(); ++variable) {
        int occurrences = counts[slot_of(make_literal(variable, true))] + counts[slot_of(make_literal(variable, false))];
        for (int time = 0; time < occurrences; ++time) {
            activities_.bump(variable);
        }
    }
}

Literal Heuristics::decide(const Trail& trail) const {
    Variable best = 0;
    for (Variable variable = 1; variable <= trail.variables(); ++variable) {
        if (trail.is_assigned(variable)) {
            continue;
        }
        if (best == 0 || activities_.of(variable) > activities_.of(best)) {
            best = variable;
        }
    }
    if (best == 0) {
        throw std::logic_error("all variables have values");
    }
    return polarities_.preferred(best);
}

void Heuristics::learn_from(const Literals& learned, const std::vector<Variable>&) {
    for (Literal literal : learned) {
        activities_.bump(variable_of(literal));
    }
    activities_.after_conflict();
}

void Heuristics::taken_back(const Literals&) {}
