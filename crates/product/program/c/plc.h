/* What a PLC program is made of: the table of its located variables, as `bumpless program build` makes it, and what
 * calls the generated code.
 *
 * Licensed under Apache-2.0 or MIT at your choice. */
#ifndef BUMPLESS_PLC_H
#define BUMPLESS_PLC_H

#include "bumpless.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum bumpless_type {
	TYPE_BOOL,
	TYPE_SINT,
	TYPE_INT,
	TYPE_DINT,
	TYPE_LINT,
	TYPE_USINT,
	TYPE_UINT,
	TYPE_UDINT,
	TYPE_ULINT,
	TYPE_REAL,
	TYPE_LREAL
};

struct bumpless_located {
	void **variable; /* the pointer by which the generated code reaches it */
	enum bumpless_type type;
};

extern const struct bumpless_located bumpless_input[], bumpless_output[];
extern const uint32_t bumpless_inputs, bumpless_outputs;

/* Makes the initial state. */
void plc_start(void);
/* Runs what is due in a cycle. */
void plc_run(const struct bumpless_cycle *cycle);
/* The only period with which it can run, nanoseconds; 0 if the project does not say. */
uint64_t plc_period(void);

/* Ends the cycle: nothing of it counts, and `reason` is shown, with `context` behind it if there is any. */
__attribute__((noreturn)) void plc_stop(const char *reason, const char *context);

#ifdef __cplusplus
}
#endif

#endif
