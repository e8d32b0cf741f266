#include "propagation.h"

#include <algorithm>

Propagator::Propagator(ClauseStore& store, Trail& trail, Statistics& statistics)
    : store_(store), trail_(trail), statistics_(statistics), watchers_(slots_for(trail.variables())) {}

void Propagator::watch(ClauseId id) {
    const Clause& clause = store_.at(id);
    watchers_[slot_of(clause.literals.at(0))].push_back(id);
    watchers_[slot_of(clause.literals.at(1))].push_back(id);
}

void Propagator::watch_all_again() {
    watchers_.assign(slots_for(trail_.variables()), std::vector<ClauseId>());
    for (ClauseId id : store_.all()) {
        if (store_.at(id).size() >= 2) {
            watch(id);
        }
    }
}

ClauseId Propagator::propagate() {
    while (next_ < trail_.size()) {
        Literal literal = trail_.at(next_);
        ++next_;
        ++statistics_.propagations;
        ClauseId conflict = visit(opposite(literal));
        if (conflict != NO_CLAUSE) {
            return conflict;
        }
    }
    return NO_CLAUSE;
}

void Propagator::trail_was_cut() {
    next_ = std::min(next_, trail_.size());
}

// Look at all clauses that watch a literal which became false. Returns one that is in conflict, or NO_CLAUSE.
ClauseId Propagator::visit(Literal false_literal) {
    std::vector<ClauseId> ids = watchers_[slot_of(false_literal)];
    std::vector<ClauseId> still_watching;
    ClauseId conflict = NO_CLAUSE;
    for (ClauseId id : ids) {
        ++statistics_.visits;
        if (conflict != NO_CLAUSE) {
            still_watching.push_back(id);
            continue;
        }
        Clause& clause = store_.at(id);
        put_second(clause, false_literal);
        Literal first = clause.literals.at(0);
        if (trail_.is_true(first)) {
            still_watching.push_back(id);
            continue;
        }
        if (find_other_watch(clause, id)) {
            continue;
        }
        still_watching.push_back(id);
        if (trail_.is_false(first)) {
            conflict = id;
        } else {
            trail_.assign(first, id);
        }
    }
    watchers_[slot_of(false_literal)] = still_watching;
    return conflict;
}

// Watch a literal that is not false in place of the second one, if there is any.
bool Propagator::find_other_watch(Clause& clause, ClauseId id) {
    for (int position = 2; position < clause.size(); ++position) {
        if (!trail_.is_false(clause.literals.at(position))) {
            std::swap(clause.literals.at(1), clause.literals.at(position));
            watchers_[slot_of(clause.literals.at(1))].push_back(id);
            return true;
        }
    }
    return false;
}

// Let the second of the watched literals be this one, which is one of them.
void Propagator::put_second(Clause& clause, Literal literal) {
    if (clause.literals.at(0) == literal) {
        std::swap(clause.literals.at(0), clause.literals.at(1));
    }
}
