// checker: whether a proof shows that a formula has no solution (DRAT, checked forwards).
//
// It reads 32-bit numbers from stdin, as proofs.py writes them: how many variables, how many clauses of the formula, then
// clauses, each ended by a 0, those of the proof with a 1 (add) or 2 (delete) before them. It prints VERIFIED, or how far
// it came. A clause of the proof has to follow by unit propagation from what is there (RUP), or so do all its
// resolvents on its first literal (RAT). The deletion of a clause that forces a value is passed over, which is sound: what
// is left can only be more.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <unordered_map>
#include <vector>

using Lit = std::uint32_t;  // twice the variable, and 1 more if negative

static Lit lit_of(std::int32_t number) {
    return number > 0 ? 2 * static_cast<Lit>(number) : 2 * static_cast<Lit>(-number) + 1;
}

struct Watch {
    std::uint32_t clause;
    Lit other;  // a literal of the clause: if it is true, there is nothing to look for
};

static std::vector<Lit> arena;                          // of each clause its size, then its literals
static std::vector<std::vector<Watch>> watches;         // by the literal that is watched
static std::vector<signed char> values;                 // by literal: 1 true, -1 false, 0 open
static std::vector<std::uint32_t> reasons;              // by variable: the clause, or 0
static std::vector<Lit> trail;
static std::size_t next_to_propagate = 0;
static bool refuted = false;                            // a conflict without assumptions
static std::vector<std::uint32_t> places;               // of all clauses in the arena
static std::vector<bool> is_in_clause;                  // by literal: while a clause is read
static std::unordered_multimap<std::uint64_t, std::uint32_t> by_hash;
static const Lit NONE = 0;                              // no literal, as variables begin with 1

static std::uint64_t hash_of(const Lit* literals, std::size_t size) {
    std::uint64_t sum = 0, product = 1, mixed = 0;  // the same in any order of the literals
    for (std::size_t i = 0; i < size; ++i) {
        std::uint64_t value = (literals[i] + 1) * 0x9e3779b97f4a7c15ULL;
        sum += value;
        mixed ^= value >> 7;
        product *= 2 * value + 1;
    }
    return (1023 * sum + product) ^ (31 * mixed);
}

static void assign(Lit literal, std::uint32_t reason) {
    values[literal] = 1;
    values[literal ^ 1] = -1;
    reasons[literal >> 1] = reason;
    trail.push_back(literal);
}

// Assigns what follows; whether there is a conflict.
static bool propagate() {
    while (next_to_propagate < trail.size()) {
        Lit gone = trail[next_to_propagate++] ^ 1;
        std::vector<Watch>& list = watches[gone];
        std::size_t kept = 0, i = 0;
        bool conflict = false;
        for (; i < list.size() && !conflict; ++i) {
            Watch watch = list[i];
            if (values[watch.other] > 0) {
                list[kept++] = watch;
                continue;
            }
            std::uint32_t size = arena[watch.clause];
            if (size == 0) {
                continue;  // deleted
            }
            Lit* literals = &arena[watch.clause + 1];
            if (literals[0] == gone) {
                std::swap(literals[0], literals[1]);
            }
            if (values[literals[0]] > 0) {
                list[kept++] = {watch.clause, literals[0]};
                continue;
            }
            std::uint32_t k = 2;
            while (k < size && values[literals[k]] < 0) {
                ++k;
            }
            if (k < size) {
                std::swap(literals[1], literals[k]);
                watches[literals[1]].push_back({watch.clause, literals[0]});
                continue;
            }
            list[kept++] = {watch.clause, literals[0]};
            if (values[literals[0]] < 0) {
                conflict = true;
            } else {
                assign(literals[0], watch.clause);
            }
        }
        while (i < list.size()) {
            list[kept++] = list[i++];
        }
        list.resize(kept);
        if (conflict) {
            return true;
        }
    }
    return false;
}

static void take_back(std::size_t size) {
    while (trail.size() > size) {
        Lit literal = trail.back();
        trail.pop_back();
        values[literal] = values[literal ^ 1] = 0;
    }
    next_to_propagate = size;
}

static bool assume_false(const Lit* literals, std::size_t size, Lit but) {
    for (std::size_t i = 0; i < size; ++i) {
        if (literals[i] == but || values[literals[i]] < 0) {
            continue;
        }
        if (values[literals[i]] > 0) {
            return true;
        }
        assign(literals[i] ^ 1, 0);
    }
    return propagate();
}

// Adds a clause without looking whether it follows.
static void add(std::vector<Lit> clause) {
    by_hash.emplace(hash_of(clause.data(), clause.size()), static_cast<std::uint32_t>(arena.size()));
    std::stable_partition(clause.begin(), clause.end(), [](Lit literal) { return values[literal] >= 0; });
    std::uint32_t place = static_cast<std::uint32_t>(arena.size());
    places.push_back(place);
    arena.push_back(static_cast<Lit>(clause.size()));
    arena.insert(arena.end(), clause.begin(), clause.end());
    if (clause.size() >= 2) {
        watches[clause[0]].push_back({place, clause[1]});
        watches[clause[1]].push_back({place, clause[0]});
    }
    if (clause.empty() || values[clause[0]] < 0) {
        refuted = true;
    } else if ((clause.size() == 1 || values[clause[1]] < 0) && values[clause[0]] == 0) {
        assign(clause[0], place);
        refuted = propagate();
    }
}

static void remove(std::vector<Lit> clause) {
    std::sort(clause.begin(), clause.end());
    auto range = by_hash.equal_range(hash_of(clause.data(), clause.size()));
    for (auto entry = range.first; entry != range.second; ++entry) {
        Lit* literals = &arena[entry->second + 1];
        std::uint32_t size = arena[entry->second];
        std::vector<Lit> there(literals, literals + size);
        std::sort(there.begin(), there.end());
        if (there != clause) {
            continue;
        }
        for (Lit literal : clause) {
            if (values[literal] > 0 && reasons[literal >> 1] == entry->second) {
                return;
            }
        }
        if (size >= 2) {
            arena[entry->second] = 0;  // lists of watches drop it when they come across it
            by_hash.erase(entry);
        }
        return;
    }
}

// Whether the assumed negation of a clause of the proof leads to a conflict, or else all resolvents on its first literal do.
static bool follows(const std::vector<Lit>& clause) {
    std::size_t before = trail.size();
    bool implied = assume_false(clause.data(), clause.size(), NONE);
    if (!implied && !clause.empty()) {
        std::size_t assumed = trail.size();
        Lit against = clause[0] ^ 1;
        implied = true;
        for (std::size_t number = 0; number < places.size() && implied; ++number) {
            std::uint32_t size = arena[places[number]];
            const Lit* literals = &arena[places[number] + 1];
            if (std::find(literals, literals + size, against) == literals + size) {
                continue;
            }
            std::vector<Lit> resolved(literals, literals + size);  // propagation moves literals
            implied = assume_false(resolved.data(), size, against);
            take_back(assumed);
        }
    }
    take_back(before);
    return implied;
}

// The literals of the next clause of the input, each once; the first one stays first.
static std::vector<Lit> next_clause(const std::vector<std::int32_t>& numbers, std::size_t& at) {
    std::vector<Lit> clause;
    for (; numbers[at] != 0; ++at) {
        Lit literal = lit_of(numbers[at]);
        if (!is_in_clause[literal]) {
            is_in_clause[literal] = true;
            clause.push_back(literal);
        }
    }
    ++at;
    for (Lit literal : clause) {
        is_in_clause[literal] = false;
    }
    return clause;
}

int main() {
    std::vector<std::int32_t> numbers;
    std::int32_t buffer[4096];
    while (std::size_t count = std::fread(buffer, sizeof(std::int32_t), 4096, stdin)) {
        numbers.insert(numbers.end(), buffer, buffer + count);
    }
    std::size_t variables = static_cast<std::size_t>(numbers.at(0)), clauses = static_cast<std::size_t>(numbers.at(1));
    watches.resize(2 * variables + 2);
    values.resize(2 * variables + 2);
    is_in_clause.resize(2 * variables + 2);
    reasons.resize(variables + 1);
    std::size_t at = 2;
    for (std::size_t number = 0; number < clauses && !refuted; ++number) {
        add(next_clause(numbers, at));
    }
    for (long line = 1; at < numbers.size() && !refuted; ++line) {
        bool adds = numbers[at++] == 1;
        std::vector<Lit> clause = next_clause(numbers, at);
        if (!adds) {
            remove(clause);
        } else if (follows(clause)) {
            add(clause);
        } else {
            std::printf("WRONG %ld\n", line);
            return 0;
        }
    }
    std::puts(refuted ? "VERIFIED" : "INCOMPLETE");
}
