// Counts of what the search did, for people who read its log.

#pragma once

#include <ostream>

struct Statistics {
    long long dropped_clauses = 0;  // of the formula, before the search
    long long decisions = 0;
    long long propagations = 0;
    long long visits = 0;  // of clauses during propagation
    long long conflicts = 0;
    long long learned_clauses = 0;
    long long learned_literals = 0;
    long long restarts = 0;
    long long reductions = 0;
    long long removed_clauses = 0;
    long long longest_learned = 0;
    long long highest_level = 0;

    // Take in a learned clause of this length.
    void count_learned(long long length);

    // Take in a decision at this level.
    void count_decision(long long level);

    // Write all counts as comments of the solver's output, one a line.
    void write(std::ostream& output) const;
};
