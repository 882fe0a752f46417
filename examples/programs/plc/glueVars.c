#include "iec_std_lib.h"

#define __LOCATED_VAR(type, name, ...) type __##name;
#include "LOCATED_VARIABLES.h"
#undef __LOCATED_VAR
#define __LOCATED_VAR(type, name, ...) type *name = &__##name;
#include "LOCATED_VARIABLES.h"
#undef __LOCATED_VAR

TIME __CURRENT_TIME;
BOOL __DEBUG;
extern unsigned long long common_ticktime__;

static IEC_BOOL *(*bool_input)[8], *(*bool_output)[8];
static IEC_BYTE **byte_input, **byte_output;
static IEC_UINT **int_input, **int_output, **int_memory;
static IEC_UDINT **dint_input, **dint_output, **dint_memory;
static IEC_ULINT **lint_input, **lint_output, **lint_memory;

void setBufferPointers(IEC_BOOL *input_bool[][8], IEC_BOOL *output_bool[][8], IEC_BYTE **input_byte,
                       IEC_BYTE **output_byte, IEC_UINT **input_int, IEC_UINT **output_int, IEC_UDINT **input_dint,
                       IEC_UDINT **output_dint, IEC_ULINT **input_lint, IEC_ULINT **output_lint,
                       IEC_UINT **memory_int, IEC_UDINT **memory_dint, IEC_ULINT **memory_lint) {
  bool_input = input_bool;
  bool_output = output_bool;
  byte_input = input_byte;
  byte_output = output_byte;
  int_input = input_int;
  int_output = output_int;
  dint_input = input_dint;
  dint_output = output_dint;
  lint_input = input_lint;
  lint_output = output_lint;
  int_memory = memory_int;
  dint_memory = memory_dint;
  lint_memory = memory_lint;
}

void glueVars() {
  bool_input[0][0] = __IX0_0;
  int_input[0] = (IEC_UINT *)__IW0;
  dint_input[0] = (IEC_UDINT *)__ID0;
  bool_output[0][0] = __QX0_0;
  bool_output[0][1] = __QX0_1;
  dint_output[0] = (IEC_UDINT *)__QD0;
  int_output[0] = (IEC_UINT *)__QW0;
  byte_output[4] = __QB4;
  int_memory[0] = (IEC_UINT *)__MW0;
  bool_output[0][2] = __QX0_2;
}

void updateTime() {
  long nanos = __CURRENT_TIME.tv_nsec + (long)(common_ticktime__ % 1000000000ULL);
  __CURRENT_TIME.tv_sec += (long)(common_ticktime__ / 1000000000ULL) + nanos / 1000000000;
  __CURRENT_TIME.tv_nsec = nanos % 1000000000;
}
