/* What calls the C that MATIEC generates (spec/sidecar.md, H-23 and H-24).
 *
 * What it keeps itself lies outside of the state, and is the same in every process of the same binary.
 *
 * Licensed under Apache-2.0 or MIT at your choice. */
#include "plc.h"

#define OPTIONAL __attribute__((weak))

/* The generated code. */
extern void config_init__(void);
extern void config_run__(unsigned long tick);
extern unsigned long long common_ticktime__;
extern unsigned long greatest_tick_count__ OPTIONAL;
extern void glueVars(void) OPTIONAL;
extern void updateTime(void) OPTIONAL;
extern struct {
	long tv_sec, tv_nsec;
} __CURRENT_TIME OPTIONAL;
#define TABLES \
	void **, void **, void **, void **, void **, void **, void **, void **, void **, void **, void **, void **, void **
extern void setBufferPointers(TABLES) OPTIONAL;
extern void setBufferPointers_v4(TABLES, void **) OPTIONAL;

/* OpenPLC's image tables: filled once by glueVars, and read by nobody here, who reads the variables themselves. */
enum { BITS = 8 * 1024, WORDS = 1024 };
static void *bits[3][BITS], *words[11][WORDS];

void plc_start(void)
{
	if (setBufferPointers_v4)
		setBufferPointers_v4(bits[0], bits[1], words[0], words[1], words[2], words[3], words[4], words[5], words[6],
		                     words[7], words[8], words[9], words[10], bits[2]);
	else if (setBufferPointers)
		setBufferPointers(bits[0], bits[1], words[0], words[1], words[2], words[3], words[4], words[5], words[6],
		                  words[7], words[8], words[9], words[10]);
	config_init__();
	if (glueVars)
		glueVars();
}

void plc_run(const struct bumpless_cycle *cycle)
{
	uint64_t tick = cycle->number - 1;

	if (!updateTime && &__CURRENT_TIME) {
		uint64_t now = (cycle->number - 1) * cycle->period_ns;

		__CURRENT_TIME.tv_sec = (long)(now / 1000000000);
		__CURRENT_TIME.tv_nsec = (long)(now % 1000000000);
	}
	if (&greatest_tick_count__ && greatest_tick_count__)
		tick %= greatest_tick_count__;
	config_run__((unsigned long)tick);
	if (updateTime)
		updateTime();
}

uint64_t plc_period(void)
{
	return common_ticktime__;
}
