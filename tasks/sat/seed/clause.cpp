#include "clause.h"

#include <stdexcept>
#include <string>

ClauseId ClauseStore::add(const Literals& literals, bool learned) {
    std::unique_ptr<Clause> clause(new Clause());
    clause->literals = literals;
    clause->learned = learned;
    clauses_.push_back(std::move(clause));
    ++all_count_;
    if (learned) {
        ++learned_count_;
    }
    return static_cast<ClauseId>(clauses_.size()) - 1;
}

void ClauseStore::remove(ClauseId id) {
    Clause& clause = at(id);
    --all_count_;
    if (clause.learned) {
        --learned_count_;
    }
    clauses_[id].reset();
}

bool ClauseStore::holds(ClauseId id) const {
    return id >= 0 && id < static_cast<ClauseId>(clauses_.size()) && clauses_[id] != nullptr;
}

Clause& ClauseStore::at(ClauseId id) {
    if (!holds(id)) {
        throw std::out_of_range("there is no clause " + std::to_string(id));
    }
    return *clauses_[id];
}

const Clause& ClauseStore::at(ClauseId id) const {
    if (!holds(id)) {
        throw std::out_of_range("there is no clause " + std::to_string(id));
    }
    return *clauses_[id];
}

std::vector<ClauseId> ClauseStore::all() const {
    std::vector<ClauseId> ids;
    for (ClauseId id = 0; id < static_cast<ClauseId>(clauses_.size()); ++id) {
        if (clauses_[id] != nullptr) {
            ids.push_back(id);
        }
    }
    return ids;
}

std::vector<ClauseId> ClauseStore::learned() const {
    std::vector<ClauseId> ids;
    for (ClauseId id : all()) {
        if (at(id).learned) {
            ids.push_back(id);
        }
    }
    return ids;
}
