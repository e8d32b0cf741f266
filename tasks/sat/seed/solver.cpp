#include "solver.h"

#include "preparation.h"

Solver::Solver(const Formula& formula, const Options& options, Proof& proof)
    : formula_(formula),
      options_(options),
      proof_(proof),
      trail_(formula.variables()),
      propagator_(store_, trail_, statistics_),
      analyser_(store_, trail_),
      heuristics_(formula, options),
      restarts_(options),
      reduction_(store_, trail_, propagator_, proof, statistics_, options) {}

Answer Solver::solve() {
    if (!load()) {
        return refute();
    }
    while (true) {
        ClauseId conflict = propagator_.propagate();
        if (conflict != NO_CLAUSE) {
            if (!settle(conflict)) {
                return refute();
            }
            continue;
        }
        if (trail_.is_complete()) {
            model_ = trail_.model();
            return Answer::satisfiable;
        }
        if (limit_is_reached()) {
            return Answer::unknown;
        }
        if (restarts_.is_due()) {
            go_back(0);
            restarts_.restarted();
            ++statistics_.restarts;
            continue;
        }
        if (reduction_.is_due()) {
            reduction_.reduce();
        }
        decide();
    }
}

// Take the clauses of the formula in. Returns false if they are in conflict at once.
bool Solver::load() {
    Prepared prepared = Preparation(formula_, proof_).prepare();
    statistics_.dropped_clauses = prepared.dropped;
    for (const Literals& clause : prepared.clauses) {
        propagator_.watch(store_.add(clause, false));
    }
    for (Literal unit : prepared.units) {
        if (trail_.is_false(unit)) {
            return false;
        }
        if (!trail_.is_true(unit)) {
            trail_.assign(unit, NO_CLAUSE);
        }
    }
    return !prepared.contradictory;
}

// Learn from a clause that became false. Returns false if it did so without any decision.
bool Solver::settle(ClauseId conflict) {
    ++statistics_.conflicts;
    if (trail_.level() == 0) {
        return false;
    }
    Lesson lesson = analyser_.analyse(conflict);
    for (ClauseId id : lesson.resolved) {
        ++store_.at(id).uses;
    }
    learn(lesson);
    return true;
}

void Solver::learn(const Lesson& lesson) {
    proof_.add(lesson.literals);
    statistics_.count_learned(static_cast<long long>(lesson.literals.size()));
    heuristics_.learn_from(lesson.literals, lesson.involved);
    restarts_.after_conflict(lesson.levels);
    go_back(lesson.back_to_level);
    if (lesson.literals.size() == 1) {
        trail_.assign(lesson.literals.front(), NO_CLAUSE);
        return;
    }
    ClauseId id = store_.add(lesson.literals, true);
    propagator_.watch(id);
    trail_.assign(lesson.literals.front(), id);
}

void Solver::go_back(int level) {
    heuristics_.taken_back(trail_.back_to(level));
    propagator_.trail_was_cut();
}

void Solver::decide() {
    Literal literal = heuristics_.decide(trail_);
    trail_.open_level();
    statistics_.count_decision(trail_.level());
    trail_.assign(literal, NO_CLAUSE);
}

Answer Solver::refute() {
    proof_.add_empty();
    return Answer::unsatisfiable;
}

bool Solver::limit_is_reached() const {
    return options_.max_conflicts > 0 && statistics_.conflicts >= options_.max_conflicts;
}
