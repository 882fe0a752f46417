/* Tables of the located variables, as `bumpless program build` makes them.
 *
 * Licensed under Apache-2.0 or MIT at your choice. */
#ifndef BUMPLESS_PLC_H
#define BUMPLESS_PLC_H

#include <stdint.h>

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

#endif
