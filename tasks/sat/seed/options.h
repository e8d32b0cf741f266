// The constants by which the search is steered, in one place.

#pragma once

struct Options {
    // restarts: the first one comes after this many conflicts, each later one after so many times more
    int first_restart = 100;
    double restart_growth = 1.5;

    // activities: all of them are multiplied by the factor after every so many conflicts
    int decay_interval = 256;
    double decay_factor = 0.5;
    double bump_step = 1.0;

    // learned clauses: so many are kept at first; after each reduction the limit grows
    int first_learned_limit = 20000;
    double learned_limit_growth = 1.1;
    double share_removed = 0.5;
    int shortest_removed = 3;

    // the search gives up after this many conflicts; 0: never
    long long max_conflicts = 0;
};
