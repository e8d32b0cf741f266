#include "reduction.h"

#include <algorithm>

Reduction::Reduction(ClauseStore& store, const Trail& trail, Propagator& propagator, Proof& proof,
                     Statistics& statistics, const Options& options)
    : store_(store),
      trail_(trail),
      propagator_(propagator),
      proof_(proof),
      statistics_(statistics),
      options_(options),
      limit_(options.first_learned_limit) {}

bool Reduction::is_due() const {
    return store_.count_learned() > limit_;
}

void Reduction::reduce() {
    std::vector<ClauseId> ids = candidates();
    std::size_t removed = static_cast<std::size_t>(options_.share_removed * static_cast<double>(ids.size()));
    for (std::size_t number = 0; number < removed; ++number) {
        proof_.remove(store_.at(ids[number]).literals);
        store_.remove(ids[number]);
    }
    propagator_.watch_all_again();
    statistics_.removed_clauses += static_cast<long long>(removed);
    ++statistics_.reductions;
    limit_ *= options_.learned_limit_growth;
}

// The learned clauses that may go, the longest first; of equals those first that were learned first.
std::vector<ClauseId> Reduction::candidates() const {
    std::vector<ClauseId> ids;
    for (ClauseId id : store_.learned()) {
        const Clause& clause = store_.at(id);
        if (clause.size() >= options_.shortest_removed && !trail_.is_reason(id, clause)) {
            ids.push_back(id);
        }
    }
    std::stable_sort(ids.begin(), ids.end(),
                     [this](ClauseId a, ClauseId b) { return store_.at(a).size() > store_.at(b).size(); });
    return ids;
}
