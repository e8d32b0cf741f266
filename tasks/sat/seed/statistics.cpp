#include "statistics.h"

#include <algorithm>
#include <iomanip>
#include <string>

namespace {

void write_count(std::ostream& output, const std::string& name, long long count) {
    output << "c " << std::left << std::setw(24) << name << std::right << std::setw(14) << count << "\n";
}

}  // namespace

void Statistics::count_learned(long long length) {
    ++learned_clauses;
    learned_literals += length;
    longest_learned = std::max(longest_learned, length);
}

void Statistics::count_decision(long long level) {
    ++decisions;
    highest_level = std::max(highest_level, level);
}

void Statistics::write(std::ostream& output) const {
    write_count(output, "clauses dropped", dropped_clauses);
    write_count(output, "conflicts", conflicts);
    write_count(output, "decisions", decisions);
    write_count(output, "propagations", propagations);
    write_count(output, "clause visits", visits);
    write_count(output, "restarts", restarts);
    write_count(output, "reductions", reductions);
    write_count(output, "clauses learned", learned_clauses);
    write_count(output, "clauses removed", removed_clauses);
    write_count(output, "literals learned", learned_literals);
    write_count(output, "longest clause learned", longest_learned);
    write_count(output, "highest level", highest_level);
}
