#include "generated.hpp"

namespace strucpp {

void TON::operator()() {
    if (!IN) {
        RUNS = false;
        Q = false;
        ET = 0;
    } else if (!RUNS) {
        RUNS = true;
        START = TIME();
    }
    if (IN) {
        ET = TIME() - START;
        Q = ET >= PT;
    }
}

void FILTER::operator()() {
    Y = Y + 0.25 * (X - Y);
}

Program_TANK::Program_TANK()
    : CHOICE(1), CYCLES(100), LAST(&TOTAL)
{
    locatedVars[2].pointer = LEVEL.raw_ptr();
    locatedVars[3].pointer = CHOICE.raw_ptr();
    locatedVars[4].pointer = BUTTON.raw_ptr();
    locatedVars[5].pointer = VALVE.raw_ptr();
    locatedVars[6].pointer = ALARM.raw_ptr();
    locatedVars[7].pointer = CYCLES.raw_ptr();
}

void Program_TANK::run() {
    DELAY.IN = LEVEL > 10;
    DELAY.PT = 200000000LL;
    DELAY();
    SMOOTH.X = SETPOINT.value - LEVEL;
    SMOOTH();
    VALVE = static_cast<int16_t>(SMOOTH.Y);
    ALARM = DELAY.Q || BUTTON;
    CYCLES = CYCLES + 1;
    TABLE.at(CHOICE) = TABLE.at(CHOICE) + 1;
    TOTAL = *LAST + 1;
    COUNT.value = TABLE.at(1);
}

Program_SLOW::Program_SLOW()
{
    locatedVars[8].pointer = SEEN.raw_ptr();
    locatedVars[9].pointer = LAMP.raw_ptr();
}

void Program_SLOW::run() {
    LAMP = LAMP + 1000 + SEEN;
}

}  // namespace strucpp
