/* A PLC program as a control program: values go in, one cycle runs, values come out (spec/sidecar.md, H-21 to H-27).
 *
 * `bumpless program build` compiles it beside what calls the generated code (plc_matiec.c, plc_strucpp.cpp) and the table of
 * located variables.
 *
 * Licensed under Apache-2.0 or MIT at your choice. */
#include "bumpless.h"
#include "plc.h"

#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where everything that can be written begins and ends: the linker's script. */
extern char bumpless_state_begin[], bumpless_state_end[];

/* `bumpless program build` finds the mark in the file and puts the binary's identity behind it. */
const volatile unsigned char bumpless_identity[48] = "BUMPLESSIDENTITY";

/* Where a cycle goes on that is stopped in the middle. Outside of the state, like all that stands here. */
static jmp_buf stopped;
static int is_running;

void plc_stop(const char *reason, const char *context)
{
	char text[256];

	snprintf(text, sizeof text, "%s%s%s", reason, context ? ": " : "", context ? context : "");
	if (is_running) {
		bumpless_say(text);
		longjmp(stopped, 1);
	}
	fprintf(stderr, "%s\n", text);
	exit(64);
}

static void start(void *state)
{
	(void)state;
	plc_start();
}

/* Rounded to the nearest, ties to even, and limited to the range; NaN is 0. */
static int64_t whole(double value, int64_t least, int64_t most)
{
	if (value != value)
		return 0;
	value = rint(value);
	if (value <= (double)least)
		return least;
	return value >= (double)most ? most : (int64_t)value;
}

static uint64_t natural(double value)
{
	if (!(value > 0.0))
		return 0;
	value = rint(value);
	return value >= 18446744073709551616.0 ? UINT64_MAX : (uint64_t)value;
}

#define PUT(type, value) \
	do { \
		type converted = (type)(value); \
		memcpy(at, &converted, sizeof converted); \
	} while (0)

static void put(void *at, enum bumpless_type type, double value)
{
	switch (type) {
	case TYPE_BOOL: PUT(uint8_t, value != 0.0); break;
	case TYPE_SINT: PUT(int8_t, whole(value, INT8_MIN, INT8_MAX)); break;
	case TYPE_INT: PUT(int16_t, whole(value, INT16_MIN, INT16_MAX)); break;
	case TYPE_DINT: PUT(int32_t, whole(value, INT32_MIN, INT32_MAX)); break;
	case TYPE_LINT: PUT(int64_t, whole(value, INT64_MIN, INT64_MAX)); break;
	case TYPE_USINT: PUT(uint8_t, whole(value, 0, UINT8_MAX)); break;
	case TYPE_UINT: PUT(uint16_t, whole(value, 0, UINT16_MAX)); break;
	case TYPE_UDINT: PUT(uint32_t, whole(value, 0, UINT32_MAX)); break;
	case TYPE_ULINT: PUT(uint64_t, natural(value)); break;
	case TYPE_REAL: PUT(float, value); break;
	case TYPE_LREAL: PUT(double, value); break;
	}
}

#define GET(type) \
	do { \
		type found; \
		memcpy(&found, at, sizeof found); \
		return (double)found; \
	} while (0)

static double get(const void *at, enum bumpless_type type)
{
	switch (type) {
	case TYPE_BOOL: return *(const uint8_t *)at != 0;
	case TYPE_SINT: GET(int8_t);
	case TYPE_INT: GET(int16_t);
	case TYPE_DINT: GET(int32_t);
	case TYPE_LINT: GET(int64_t);
	case TYPE_USINT: GET(uint8_t);
	case TYPE_UINT: GET(uint16_t);
	case TYPE_UDINT: GET(uint32_t);
	case TYPE_ULINT: GET(uint64_t);
	case TYPE_REAL: GET(float);
	case TYPE_LREAL: GET(double);
	}
	return 0.0;
}

static int step(const struct bumpless_cycle *cycle, const double *inputs, double *outputs, void *state)
{
	uint32_t i;

	(void)state;
	for (i = 0; i < bumpless_inputs; i++)
		put(*bumpless_input[i].variable, bumpless_input[i].type, inputs[i]);
	if (setjmp(stopped)) {
		is_running = 0;
		return 1;
	}
	is_running = 1;
	plc_run(cycle);
	is_running = 0;
	for (i = 0; i < bumpless_outputs; i++)
		outputs[i] = get(*bumpless_output[i].variable, bumpless_output[i].type);
	return 0;
}

int main(void)
{
	struct bumpless_program program;
	int i;

	memset(&program, 0, sizeof program);
	program.inputs = bumpless_inputs;
	program.outputs = bumpless_outputs;
	program.state_size = (size_t)(bumpless_state_end - bumpless_state_begin);
	for (i = 7; i >= 0; i--)
		program.state_version = program.state_version << 8 | bumpless_identity[16 + i];
	program.period_ns = plc_period();
	program.start = start;
	program.step = step;
	program.state = bumpless_state_begin;
	return bumpless_run(&program);
}
