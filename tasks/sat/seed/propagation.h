// Unit propagation with two watched literals for each clause.
//
// As long as neither of the two is false, a clause can neither force a value nor be in conflict, so that only the
// clauses need to be looked at in which a watched literal became false.

#pragma once

#include <vector>

#include "clause.h"
#include "literal.h"
#include "statistics.h"
#include "trail.h"

class Propagator {
  public:
    Propagator(ClauseStore& store, Trail& trail, Statistics& statistics);

    // Watch the first two literals of a clause, which must have that many.
    void watch(ClauseId id);

    // Watch all clauses of the store from the beginning, after some of them were removed.
    void watch_all_again();

    // Assign what follows from the values since the last call. Returns a clause that became false, or NO_CLAUSE.
    ClauseId propagate();

    // Tell that values were taken back, so that the trail is shorter now.
    void trail_was_cut();

  private:
    ClauseId visit(Literal false_literal);
    bool find_other_watch(Clause& clause, ClauseId id);
    void put_second(Clause& clause, Literal literal);

    ClauseStore& store_;
    Trail& trail_;
    Statistics& statistics_;
    std::vector<std::vector<ClauseId>> watchers_;  // by the slot of the watched literal
    int next_ = 0;                                 // the first position of the trail that was not propagated
};
