"""Keeps a tank's level: a PI controller with a filter on the sensor.

Inputs: level (m), set point (m). Outputs: pump (0 to 1), 1.0 while the level is too high.
"""

import ctypes

import bumpless


class State(ctypes.Structure):
    _fields_ = [("filtered", ctypes.c_double), ("integral", ctypes.c_double), ("too_high", ctypes.c_uint64)]


def step(cycle, inputs, outputs, state):
    level, set_point = inputs
    state.filtered += 0.1 * (level - state.filtered)
    error = set_point - state.filtered
    pump = 2.0 * error + 0.5 * state.integral
    if 0.0 < pump < 1.0:  # otherwise the integral would wind up
        state.integral += error * cycle.period
    state.too_high = state.too_high + 1 if state.filtered > 1.1 * set_point else 0
    outputs[0] = min(max(pump, 0.0), 1.0)
    outputs[1] = float(state.too_high > 10)


bumpless.run(step, inputs=2, outputs=2, state=State, state_version=1)
