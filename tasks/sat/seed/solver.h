// The search: decide, propagate, learn from conflicts, go back, until all is decided or nothing is left to decide.

#pragma once

#include <vector>

#include "analysis.h"
#include "clause.h"
#include "formula.h"
#include "heuristics.h"
#include "options.h"
#include "proof.h"
#include "propagation.h"
#include "reduction.h"
#include "restarts.h"
#include "statistics.h"
#include "trail.h"

enum class Answer { satisfiable, unsatisfiable, unknown };

class Solver {
  public:
    Solver(const Formula& formula, const Options& options, Proof& proof);

    // Search until there is an answer, or the limit of conflicts is reached.
    Answer solve();

    // The values of the variables, by number; only after the answer `satisfiable`.
    const std::vector<bool>& model() const { return model_; }

    const Statistics& statistics() const { return statistics_; }

  private:
    bool load();
    bool settle(ClauseId conflict);
    void learn(const Lesson& lesson);
    void go_back(int level);
    void decide();
    Answer refute();
    bool limit_is_reached() const;

    const Formula& formula_;
    const Options& options_;
    Proof& proof_;
    Statistics statistics_;
    ClauseStore store_;
    Trail trail_;
    Propagator propagator_;
    Analyser analyser_;
    Heuristics heuristics_;
    Restarts restarts_;
    Reduction reduction_;
    std::vector<bool> model_;
};
