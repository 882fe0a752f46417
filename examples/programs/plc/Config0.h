#include "iec_std_lib.h"
