// Removes learned clauses when there are many, so that propagation does not become slower and slower.

#pragma once

#include <vector>

#include "clause.h"
#include "options.h"
#include "proof.h"
#include "propagation.h"
#include "statistics.h"
#include "trail.h"

class Reduction {
  public:
    Reduction(ClauseStore& store, const Trail& trail, Propagator& propagator, Proof& proof, Statistics& statistics,
              const Options& options);

    // Whether there are more learned clauses than the limit of the moment.
    bool is_due() const;

    // Remove the longest of the learned clauses, but none that is the reason of a value.
    void reduce();

  private:
    std::vector<ClauseId> candidates() const;

    ClauseStore& store_;
    const Trail& trail_;
    Propagator& propagator_;
    Proof& proof_;
    Statistics& statistics_;
    const Options& options_;
    double limit_;
};
