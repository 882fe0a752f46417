// tank.st as STruC++ would declare it, written by hand to its interface.
#pragma once

#include "iec_std_lib.hpp"

namespace strucpp {

class Program_TANK;
class Program_SLOW;
class Configuration_CONFIG0;

inline GlobalVar<IEC_REAL> SETPOINT{20.0f};
inline GlobalVar<IEC_UINT> COUNT{0};

class TON {
public:
    IEC_BOOL IN;
    IEC_TIME PT;
    IEC_BOOL Q;
    IEC_TIME ET;
    IEC_TIME START;
    IEC_BOOL RUNS;

    void operator()();

    virtual ~TON() = default;
};

class FILTER {
public:
    IEC_LREAL X;
    IEC_LREAL Y;

    void operator()();

    virtual ~FILTER() = default;
};

class Program_TANK : public ProgramBase {
public:
    IEC_INT LEVEL;  // AT %IW0
    IEC_INT CHOICE;  // AT %IW1
    IEC_BOOL BUTTON;  // AT %IX1.2
    IEC_INT VALVE;  // AT %QW0
    IEC_BOOL ALARM;  // AT %QX0.3
    IEC_INT CYCLES;  // AT %MW5
    TON DELAY;
    FILTER SMOOTH;
    Array1D<IEC_INT, 1, 5> TABLE;
    IEC_DINT TOTAL;
    IEC_DINT *LAST;

    Program_TANK();

    void run() override;
};

class Program_SLOW : public ProgramBase {
public:
    IEC_INT SEEN;  // AT %MW5
    IEC_DINT LAMP;  // AT %QD2

    Program_SLOW();

    void run() override;
};

class Configuration_CONFIG0 : public ConfigurationInstance {
public:
    Program_SLOW INST1;
    Program_TANK INST0;

    TaskInstance tasks_storage[2];
    ProgramBase* task_programs_storage[2];
    ResourceInstance resources_storage[1];

    Configuration_CONFIG0();

    const char* get_name() const override;
    ResourceInstance* get_resources() override;
    size_t get_resource_count() const override;
};

// Forward: SETPOINT AT %ID4 in configuration
// Forward: COUNT AT %QW7 in configuration
// Forward: LEVEL AT %IW0 in Program_TANK
// Forward: CHOICE AT %IW1 in Program_TANK
// Forward: BUTTON AT %IX1.2 in Program_TANK
// Forward: VALVE AT %QW0 in Program_TANK
// Forward: ALARM AT %QX0.3 in Program_TANK
// Forward: CYCLES AT %MW5 in Program_TANK
// Forward: SEEN AT %MW5 in Program_SLOW
// Forward: LAMP AT %QD2 in Program_SLOW

extern LocatedVar locatedVars[10];
constexpr uint32_t locatedVarsCount = 10;

}  // namespace strucpp
