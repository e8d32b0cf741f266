// When the search gives up its decisions and begins again with what it has learned.

#pragma once

#include "options.h"

class Restarts {
  public:
    explicit Restarts(const Options& options);

    // Take in a conflict, and how many levels the clause has that it taught.
    void after_conflict(int levels);

    // Whether it is time to restart.
    bool is_due() const;

    // Take in that the search was restarted.
    void restarted();

  private:
    const Options& options_;
    double interval_;
    long long since_restart_ = 0;
};
