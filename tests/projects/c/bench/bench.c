#include <stdio.h>
#include <time.h>

#include "primes.h"

int main(void)
{
    clock_t began = clock();
    unsigned found = count_primes(8000);
    double ms = 1000.0 * (clock() - began) / CLOCKS_PER_SEC;
    printf("%u primes, took %.3f ms\n", found, ms);
    return 0;
}
