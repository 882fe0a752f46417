#include "iec_std_lib.h"

// RESOURCE RES0

extern unsigned long long common_ticktime__;

#include "accessor.h"
#include "POUS.h"

#include "Config0.h"

#include "POUS.c"

BOOL FAST;
BOOL SLOW;
TANK RES0__TANK0;
LAMP RES0__LAMP0;

void RES0_init__(void) {
  BOOL retain;
  retain = 0;
  FAST = FALSE;
  SLOW = FALSE;
  TANK_init__(&RES0__TANK0,retain);
  LAMP_init__(&RES0__LAMP0,retain);
}

void RES0_run__(unsigned long tick) {
  FAST = !(tick % 1);
  SLOW = !(tick % 25);
  if (FAST) {
    TANK_body__(&RES0__TANK0);
  }
  if (SLOW) {
    LAMP_body__(&RES0__LAMP0);
  }
}
