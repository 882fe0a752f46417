/* A sum of the input, and what the first argument names: a program for each trap (tests of `bumpless program test`).
 * Input: a number. Outputs: the sum, and what hangs on something else than inputs and state. */
#include <bumpless.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

struct state {
	double sum, spare;
};

static const char *name = "";
static double kept;

static int is(const char *wanted)
{
	return !strcmp(name, wanted);
}

/* Numbers that another process does not get. */
static double chance(void)
{
	return (double)getpid() + (double)clock();
}

/* In a list on the heap that grows by one. */
static double listed(void)
{
	static double *list;
	static size_t count;

	list = realloc(list, (count + 1) * sizeof *list);
	list[count++] = 1.0;
	return (double)count;
}

/* As an index that nobody checks: behind the state, where nothing is captured. */
static double beyond(struct state *state)
{
	volatile double *behind = (double *)(state + 1);

	*behind += 1.0;
	return *behind;
}

static void *sleeper(void *nothing)
{
	pause();
	return nothing;
}

static void start(void *memory)
{
	struct state *state = memory;
	pthread_t thread;

	if (is("garbage"))
		state->spare = chance();
	if (is("began"))
		kept = (double)time(NULL);
	if (is("socket"))
		socket(AF_INET, SOCK_DGRAM, 0);
	if (is("thread"))
		pthread_create(&thread, NULL, sleeper, NULL);
}

static int step(const struct bumpless_cycle *cycle, const double *inputs, double *outputs, void *memory)
{
	struct state *state = memory;

	state->sum += inputs[0];
	outputs[0] = state->sum;
	outputs[1] = 0.0;
	if (is("static"))
		outputs[1] = kept++;
	if (is("heap"))
		outputs[1] = listed();
	if (is("clock"))
		outputs[1] = (double)time(NULL);
	if (is("began"))
		outputs[1] = kept;
	if (is("chance"))
		outputs[1] = chance();
	if (is("beyond"))
		outputs[1] = beyond(state);
	if (is("nan") && cycle->number >= 50) {
		uint64_t bits = 0x7ff8000000000000 | (uint64_t)getpid();

		memcpy(&outputs[1], &bits, sizeof bits);
	}
	while (is("loop") && cycle->number == 30)
		;
	if (is("fails") && cycle->number == 40) {
		bumpless_say("the valve is stuck");
		return 1;
	}
	return 0;
}

int main(int count, char **words)
{
	const struct bumpless_program program = {
		.inputs = 1, .outputs = 2, .state_size = sizeof(struct state), .start = start, .step = step,
	};

	if (count > 1)
		name = words[1];
	return bumpless_run(&program);
}
