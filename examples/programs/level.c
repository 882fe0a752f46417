/* Keeps a level. Inputs: level, set point. Output: valve, 0 to 1.
 *
 *     clang --target=wasm32 -O2 -nostdlib -Wl,--no-entry,--export=cycle,-z,stack-size=16384 -o level.wasm level.c
 *     bumpless program test level.wasm --inputs 2 --outputs 1
 */

#define BUMPLESS(name) __attribute__((import_module("bumpless"), import_name(#name)))

BUMPLESS(input) double input(int index);
BUMPLESS(output) void output(int index, double value);
BUMPLESS(period_ns) long long period_ns(void);

static double integral;

static double limited(double value, double low, double high)
{
    return value < low ? low : value > high ? high : value;
}

void cycle(void)
{
    double error = input(1) - input(0);
    double step = (double)period_ns() * 1e-9;
    integral = limited(integral + error * step, -10.0, 10.0);
    output(0, limited(0.8 * error + 0.1 * integral, 0.0, 1.0));
}
