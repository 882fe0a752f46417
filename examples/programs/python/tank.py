"""Keeps the levels of tanks 1 and 2 of the quadruple-tank process: two PI controllers (examples/own-program.toml).

Inputs: level 1 (cm), level 2 (cm). Outputs: voltages of pumps 1 and 2 (0 to 10 V).
"""

import ctypes

import bumpless

SET_POINTS = (12.4, 12.7)  # cm
SENSOR = 0.5  # V per cm
GAINS = (3.0, 2.7)
INTEGRAL_TIMES = (30.0, 40.0)  # s
BIAS = 3.0  # V


class State(ctypes.Structure):
    _fields_ = [("integrals", ctypes.c_double * 2)]


def step(cycle, inputs, outputs, state):
    for i, level in enumerate(inputs):
        error = (SET_POINTS[i] - level) * SENSOR
        wanted = BIAS + GAINS[i] * error + state.integrals[i]
        outputs[i] = min(max(wanted, 0.0), 10.0)
        # At a limit the integral would wind up: what is beyond the limit is taken back.
        state.integrals[i] += cycle.period / INTEGRAL_TIMES[i] * (GAINS[i] * error + outputs[i] - wanted)


bumpless.run(step, inputs=2, outputs=2, state=State, state_version=1)
