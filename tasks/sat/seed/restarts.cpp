#include "restarts.h"

Restarts::Restarts(const Options& options) : options_(options), interval_(options.first_restart) {}

void Restarts::after_conflict(int) {
    ++since_restart_;
}

bool Restarts::is_due() const {
    return static_cast<double>(since_restart_) >= interval_;
}

void Restarts::restarted() {
    since_restart_ = 0;
    interval_ *= options_.restart_growth;
}
