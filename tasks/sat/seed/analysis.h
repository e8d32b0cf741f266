// Conflict analysis: the clause that a conflict teaches, up to the first unique implication point.
//
// The clause in conflict is resolved with the reasons of its literals, the latest first, until a single literal of the
// present level is left. Its opposite is true whatever led there, as long as the other literals are false.

#pragma once

#include <vector>

#include "clause.h"
#include "literal.h"
#include "trail.h"

struct Lesson {
    Literals literals;       // the first one will be forced; the second one has the level to go back to
    int back_to_level = 0;   // where the first literal is forced
    int levels = 0;          // how many levels its literals have
    std::vector<Variable> involved;   // all variables that were resolved or kept
    std::vector<ClauseId> resolved;   // the clauses that took part
};

class Analyser {
  public:
    Analyser(const ClauseStore& store, const Trail& trail);

    // What a clause teaches in which all literals are false, at a level above 0.
    Lesson analyse(ClauseId conflict);

  private:
    void take_in(ClauseId id, Literal resolved_on, Lesson& lesson);
    Literal latest_marked(int& position) const;
    void finish(Literal asserting, Lesson& lesson) const;
    int count_levels(const Literals& literals) const;

    const ClauseStore& store_;
    const Trail& trail_;
    std::vector<bool> marked_;  // by variable: it is in the resolvent
    int open_ = 0;              // how many literals of the present level are in it
};
