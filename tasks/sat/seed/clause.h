// Clauses, original and learned, and the store that owns them.

#pragma once

#include <memory>
#include <vector>

#include "literal.h"

using ClauseId = int;

const ClauseId NO_CLAUSE = -1;

struct Clause {
    Literals literals;  // the first two are watched
    bool learned = false;
    int uses = 0;  // in how many conflicts it took part

    int size() const { return static_cast<int>(literals.size()); }
};

class ClauseStore {
  public:
    // Add a clause. Its number stays valid until it is removed.
    ClauseId add(const Literals& literals, bool learned);

    // Remove a clause; its number is never given again.
    void remove(ClauseId id);

    bool holds(ClauseId id) const;
    Clause& at(ClauseId id);
    const Clause& at(ClauseId id) const;

    // The numbers of all clauses, or of the learned ones alone, in the order in which they were added.
    std::vector<ClauseId> all() const;
    std::vector<ClauseId> learned() const;

    int count_learned() const { return learned_count_; }
    int count_all() const { return all_count_; }

  private:
    std::vector<std::unique_ptr<Clause>> clauses_;
    int all_count_ = 0;
    int learned_count_ = 0;
};
