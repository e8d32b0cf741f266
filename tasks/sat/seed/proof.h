// Writes down what was learned and removed, so that others can check that a formula has no solution (DRAT).

#pragma once

#include <fstream>
#include <string>

#include "literal.h"

class Proof {
  public:
    // Write to a file of this name; with an empty name nothing is written.
    explicit Proof(const std::string& path);

    // A clause that follows by unit propagation from those before it.
    void add(const Literals& clause);

    // A clause that is not used any more.
    void remove(const Literals& clause);

    // The empty clause: there is no solution.
    void add_empty();

    // Write what is left, and close the file.
    void close();

    long long lines() const { return lines_; }

  private:
    void write(const std::string& prefix, const Literals& clause);

    bool enabled_;
    std::ofstream file_;
    long long lines_ = 0;
};
