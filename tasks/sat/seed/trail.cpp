#include "trail.h"

#include <stdexcept>

Trail::Trail(int variables) : variables_(variables), entries_(variables + 1) {}

Value Trail::value(Literal literal) const {
    Value value = entries_.at(variable_of(literal)).value;
    if (value == Value::unassigned || is_positive(literal)) {
        return value;
    }
    return value == Value::yes ? Value::no : Value::yes;
}

bool Trail::is_assigned(Variable variable) const {
    return entries_.at(variable).value != Value::unassigned;
}

int Trail::level_of(Variable variable) const {
    return entries_.at(variable).level;
}

ClauseId Trail::reason_of(Variable variable) const {
    return entries_.at(variable).reason;
}

bool Trail::is_reason(ClauseId id, const Clause& clause) const {
    for (Literal literal : clause.literals) {
        if (is_true(literal) && reason_of(variable_of(literal)) == id) {
            return true;
        }
    }
    return false;
}

void Trail::open_level() {
    level_starts_.push_back(size());
}

void Trail::assign(Literal literal, ClauseId reason) {
    Entry& entry = entries_.at(variable_of(literal));
    if (entry.value != Value::unassigned) {
        throw std::logic_error("the variable has a value already");
    }
    entry.value = is_positive(literal) ? Value::yes : Value::no;
    entry.level = level();
    entry.reason = reason;
    literals_.push_back(literal);
}

Literals Trail::back_to(int level) {
    Literals taken_back;
    while (this->level() > level) {
        int start = level_starts_.back();
        level_starts_.pop_back();
        while (size() > start) {
            Literal literal = literals_.back();
            literals_.pop_back();
            entries_[variable_of(literal)] = Entry();
            taken_back.push_back(literal);
        }
    }
    return taken_back;
}

std::vector<bool> Trail::model() const {
    std::vector<bool> values(variables_ + 1, false);
    for (Literal literal : literals_) {
        values[variable_of(literal)] = is_positive(literal);
    }
    return values;
}
