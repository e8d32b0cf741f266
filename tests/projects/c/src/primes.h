#ifndef PRIMES_H
#define PRIMES_H

/* 1 if n is a prime number, else 0. */
int is_prime(unsigned n);

/* How many primes are below the limit. */
unsigned count_primes(unsigned limit);

#endif
