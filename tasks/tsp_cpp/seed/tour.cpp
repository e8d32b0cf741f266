// Nearest neighbour, then a search by random steps: a stretch of the tour is turned round, or moved to another place,
// where that makes the tour shorter, or longer by less than a threshold that shrinks. All choices are the numbers below.
#include <math.h>
#include <stdint.h>
#include <stdio.h>

const double START = 0.0;   // the threshold at first, in steps of the tour of the nearest neighbour
const double END = 0.0;     // and at last
const double BEND = 1.0;    // how it shrinks: evenly, or sooner
const double MOVED = 0.0;   // share of the stretches that are moved
const double REACH = 0.5;   // how long a stretch may be that is turned round, as a share of the cities
const double LENGTH = 3.0;  // and one that is moved, in cities
const int STEPS = 2000;     // tried for each city

struct City {
    double x, y;
};

const int MOST = 1000;  // cities
City cities[MOST];
int order[MOST];

double way(int a, int b) {
    double x = cities[order[a]].x - cities[order[b]].x;
    double y = cities[order[a]].y - cities[order[b]].y;
    return sqrt(x * x + y * y);
}

// A whole number below `limit`, the same ones in each run.
int drawn(double limit) {
    static uint64_t state = 88172645463325252ull;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    uint64_t most = limit < 1.0 ? 1 : (uint64_t)limit;
    return (int)(state % most);
}

void build(int n) {
    for (int city = 0; city < n; ++city) {
        order[city] = city;
    }
    for (int at = 1; at < n; ++at) {
        int nearest = at;
        for (int other = at + 1; other < n; ++other) {
            if (way(at - 1, other) < way(at - 1, nearest)) {
                nearest = other;
            }
        }
        int city = order[nearest];
        order[nearest] = order[at];
        order[at] = city;
    }
}

void reverse(int first, int last) {
    for (; first < last; ++first, --last) {
        int city = order[first];
        order[first] = order[last];
        order[last] = city;
    }
}

// Turns round the stretch from `first` to `last`.
void turn(int n, int first, int last, double threshold) {
    int before = first - 1, after = (last + 1) % n;
    double longer = way(before, last) + way(first, after) - way(before, first) - way(last, after);
    if (longer < threshold) {
        reverse(first, last);
    }
}

// Moves the stretch from `first` to `last` to behind `place`, which comes later.
void move(int n, int first, int last, int place, double threshold) {
    int before = first - 1, after = last + 1, behind = (place + 1) % n;
    double longer = way(before, after) + way(place, first) + way(last, behind);
    longer -= way(before, first) + way(last, after) + way(place, behind);
    if (longer < threshold) {
        reverse(first, last);
        reverse(after, place);
        reverse(first, place);
    }
}

void search(int n) {
    double unit = 0.0;
    for (int at = 0; at < n; ++at) {
        unit += way(at, (at + 1) % n) / n;
    }
    int total = STEPS * n;
    for (int step = 0; step < total; ++step) {
        double left = 1.0 - (double)step / total;
        double threshold = unit * (END + (START - END) * left * (BEND + (1.0 - BEND) * left)) - 1e-9;
        int first = 1 + drawn(n - 2);
        if (drawn(1000) < 1000.0 * MOVED) {
            int last = first + drawn(LENGTH);
            if (last < n - 1) {
                move(n, first, last, last + 1 + drawn(n - last - 1), threshold);
            }
        } else {
            int last = first + 1 + drawn(REACH * n);
            if (last < n) {
                turn(n, first, last, threshold);
            }
        }
    }
}

int main() {
    int n = 0;
    if (scanf("%d", &n) != 1 || n > MOST) {
        return 1;
    }
    for (int city = 0; city < n; ++city) {
        if (scanf("%lf %lf", &cities[city].x, &cities[city].y) != 2) {
            return 1;
        }
    }
    build(n);
    search(n);
    for (int at = 0; at < n; ++at) {
        printf("%d\n", order[at]);
    }
    return 0;
}
