/* Keeps a tank's level: a PI controller with a filter on the sensor.
 * Inputs: level (m), set point (m). Outputs: pump (0 to 1), 1.0 while the level is too high. */
#include <bumpless.h>

struct state {
	double filtered, integral;
	uint64_t too_high;
};

static int step(const struct bumpless_cycle *cycle, const double *inputs, double *outputs, void *memory)
{
	struct state *state = memory;
	double error, pump;

	state->filtered += 0.1 * (inputs[0] - state->filtered);
	error = inputs[1] - state->filtered;
	pump = 2.0 * error + 0.5 * state->integral;
	if (pump > 0.0 && pump < 1.0) /* otherwise the integral would wind up */
		state->integral += error * ((double)cycle->period_ns / 1e9);
	state->too_high = state->filtered > 1.1 * inputs[1] ? state->too_high + 1 : 0;
	outputs[0] = pump < 0.0 ? 0.0 : pump > 1.0 ? 1.0 : pump;
	outputs[1] = state->too_high > 10;
	return 0;
}

int main(void)
{
	const struct bumpless_program program = {
		.inputs = 2, .outputs = 2, .state_size = sizeof(struct state), .state_version = 1, .step = step,
	};
	return bumpless_run(&program);
}
