#include "generated.hpp"

namespace strucpp {

LocatedVar locatedVars[10] = {
    { LocatedArea::Input, LocatedSize::DWord, 4, 0, {0, 0, 0}, nullptr },  // SETPOINT AT %ID4
    { LocatedArea::Output, LocatedSize::Word, 7, 0, {0, 0, 0}, nullptr },  // COUNT AT %QW7
    { LocatedArea::Input, LocatedSize::Word, 0, 0, {0, 0, 0}, nullptr },  // LEVEL AT %IW0
    { LocatedArea::Input, LocatedSize::Word, 1, 0, {0, 0, 0}, nullptr },  // CHOICE AT %IW1
    { LocatedArea::Input, LocatedSize::Bit, 1, 2, {0, 0, 0}, nullptr },  // BUTTON AT %IX1.2
    { LocatedArea::Output, LocatedSize::Word, 0, 0, {0, 0, 0}, nullptr },  // VALVE AT %QW0
    { LocatedArea::Output, LocatedSize::Bit, 0, 3, {0, 0, 0}, nullptr },  // ALARM AT %QX0.3
    { LocatedArea::Memory, LocatedSize::Word, 5, 0, {0, 0, 0}, nullptr },  // CYCLES AT %MW5
    { LocatedArea::Memory, LocatedSize::Word, 5, 0, {0, 0, 0}, nullptr },  // SEEN AT %MW5
    { LocatedArea::Output, LocatedSize::DWord, 2, 0, {0, 0, 0}, nullptr }  // LAMP AT %QD2
};

Configuration_CONFIG0::Configuration_CONFIG0()
{
    task_programs_storage[0] = &INST1;
    tasks_storage[0] = TaskInstance("RARE", 100000000LL, 5, &task_programs_storage[0], 1);
    task_programs_storage[1] = &INST0;
    tasks_storage[1] = TaskInstance("FAST", 20000000LL, 1, &task_programs_storage[1], 1);
    resources_storage[0] = ResourceInstance("RES0", "PLC", &tasks_storage[0], 2);
    locatedVars[0].pointer = SETPOINT.value.raw_ptr();
    locatedVars[1].pointer = COUNT.value.raw_ptr();
}

const char* Configuration_CONFIG0::get_name() const {
    return "CONFIG0";
}

ResourceInstance* Configuration_CONFIG0::get_resources() {
    return resources_storage;
}

size_t Configuration_CONFIG0::get_resource_count() const {
    return 1;
}

}  // namespace strucpp
