/* A control program in C or C++ that a Bumpless pair runs in a process of its own.
 *
 * Fill in a struct bumpless_program and call bumpless_run() from main(). All that the program keeps from one cycle to
 * the next must stand in its state: then it goes on on another computer as if nothing had happened. Nothing may
 * hang on static variables, the heap, a clock, random numbers, files or sockets.
 *
 * Licensed under Apache-2.0 or MIT at your choice. */
#ifndef BUMPLESS_H
#define BUMPLESS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version of the protocol that this library speaks. */
#define BUMPLESS_PROTOCOL 1

/* The circumstances of one cycle. There is no other clock that a program may read. */
struct bumpless_cycle {
	uint64_t number;    /* 1 at a cold start; goes on counting where a predecessor stopped */
	uint64_t period_ns; /* the application's period */
	uint64_t time_ns;   /* the time that has passed for the program: number times period */
};

struct bumpless_program {
	uint32_t inputs;        /* how many inputs it takes; the configuration names as many */
	uint32_t outputs;       /* how many outputs it gives; the configuration names as many */
	size_t state_size;      /* bytes of its state */
	uint64_t state_version; /* to be changed whenever the layout of the state changes: builds with the same one take over
	                         * each other's states; 0: only the same file does */
	uint64_t period_ns;     /* the only period with which it can run, 0 if any */

	/* Makes the initial state, from one that is all zeros. May be NULL. */
	void (*start)(void *state);

	/* Runs one cycle. outputs holds those of the cycle before, zeros in the very first. Returns 0; anything else says
	 * that there are no outputs: the host then ends this process and goes on from the state before this cycle. */
	int (*step)(const struct bumpless_cycle *cycle, const double *inputs, double *outputs, void *state);

	/* NULL: the library finds a place for the state. Else where state_size bytes of the program's own are to become
	 * the state, with what they hold: at the beginning of a page, and alone in their pages. */
	void *state;

	/* Makes the state, which is an initial one, from the size bytes of old, a state of another version of this program;
	 * version is the state_version of that one. It has as long as a cycle may take. Returns 0; anything else says that
	 * nothing can be made of it: then the other version goes on. NULL: it converts none. */
	int (*convert)(uint64_t version, const void *old, size_t size, void *state);
};

/* Serves the host that started this process until that ends it. Returns what main() should: 0, or 64 with a word on
 * standard error if there is no host, or one of another version. */
int bumpless_run(const struct bumpless_program *program);

/* Why the step fails that is about to return non-zero; shown in the host's status and events. */
void bumpless_say(const char *reason);

#ifdef __cplusplus
}
#endif

#endif
