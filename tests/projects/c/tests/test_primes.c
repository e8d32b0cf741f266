#include <stdio.h>

#include "primes.h"

static int failures = 0;

static void expect(const char *what, unsigned got, unsigned wanted)
{
    if (got != wanted) {
        printf("%s: expected %u, got %u\n", what, wanted, got);
        failures++;
    }
}

int main(void)
{
    expect("is_prime(0)", is_prime(0), 0);
    expect("is_prime(2)", is_prime(2), 1);
    expect("is_prime(9)", is_prime(9), 0);
    expect("is_prime(97)", is_prime(97), 1);
    expect("count_primes(100)", count_primes(100), 25);
    expect("count_primes(1000)", count_primes(1000), 168);
    return failures > 0;
}
