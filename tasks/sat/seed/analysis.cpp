#include "analysis.h"

#include <algorithm>
#include <set>

Analyser::Analyser(const ClauseStore& store, const Trail& trail) : store_(store), trail_(trail) {}

Lesson Analyser::analyse(ClauseId conflict) {
    Lesson lesson;
    marked_.assign(trail_.variables() + 1, false);
    open_ = 0;
    take_in(conflict, NO_LITERAL, lesson);
    int position = trail_.size();
    Literal literal = latest_marked(position);
    while (open_ > 1) {
        --open_;
        take_in(trail_.reason_of(variable_of(literal)), literal, lesson);
        literal = latest_marked(position);
    }
    finish(opposite(literal), lesson);
    return lesson;
}

// Add the literals of a clause to the resolvent, but for the one that is resolved on.
void Analyser::take_in(ClauseId id, Literal resolved_on, Lesson& lesson) {
    Clause clause = store_.at(id);
    lesson.resolved.push_back(id);
    for (Literal literal : clause.literals) {
        Variable variable = variable_of(literal);
        if (literal == resolved_on || marked_[variable] || trail_.level_of(variable) == 0) {
            continue;
        }
        marked_[variable] = true;
        lesson.involved.push_back(variable);
        if (trail_.level_of(variable) == trail_.level()) {
            ++open_;
        } else {
            lesson.literals.push_back(literal);
        }
    }
}

// The latest literal of the trail before a position that is in the resolvent; the position moves to it.
Literal Analyser::latest_marked(int& position) const {
    --position;
    while (!marked_[variable_of(trail_.at(position))]) {
        --position;
    }
    return trail_.at(position);
}

// Put the literals in order: the asserting one, then the others from the highest level on.
void Analyser::finish(Literal asserting, Lesson& lesson) const {
    std::sort(lesson.literals.begin(), lesson.literals.end(), [this](Literal a, Literal b) {
        int level_a = trail_.level_of(variable_of(a));
        int level_b = trail_.level_of(variable_of(b));
        return level_a != level_b ? level_a > level_b : a < b;
    });
    lesson.back_to_level = lesson.literals.empty() ? 0 : trail_.level_of(variable_of(lesson.literals.front()));
    lesson.literals.insert(lesson.literals.begin(), asserting);
    lesson.levels = count_levels(lesson.literals);
}

int Analyser::count_levels(const Literals& literals) const {
    std::set<int> levels;
    for (Literal literal : literals) {
        levels.insert(trail_.level_of(variable_of(literal)));
    }
    return static_cast<int>(levels.size());
}
