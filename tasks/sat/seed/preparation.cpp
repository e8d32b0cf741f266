#include "preparation.h"

Preparation::Preparation(const Formula& formula, Proof& proof) : formula_(formula), proof_(proof) {}

Prepared Preparation::prepare() {
    Prepared prepared;
    for (const Literals& original : formula_.clauses()) {
        Literals clause = without_repetitions(original);
        if (is_tautology(clause) || says_nothing_new(clause)) {
            ++prepared.dropped;
            continue;
        }
        if (clause.size() != original.size()) {
            proof_.add(clause);
        }
        seen_.insert(clause);
        take_in(clause, prepared);
    }
    return prepared;
}

// Whether the same clause was there before.
bool Preparation::says_nothing_new(const Literals& clause) const {
    return seen_.count(clause) > 0;
}

void Preparation::take_in(const Literals& clause, Prepared& prepared) const {
    if (clause.empty()) {
        prepared.contradictory = true;
    } else if (clause.size() == 1) {
        prepared.units.push_back(clause.front());
    } else {
        prepared.clauses.push_back(clause);
    }
}
