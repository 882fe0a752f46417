void TON_init__(TON *data__, BOOL retain) {
  static const TIME zero = {0, 0};
  __INIT_VAR(data__->IN,FALSE,retain);
  __INIT_VAR(data__->PT,zero,retain);
  __INIT_VAR(data__->Q,FALSE,retain);
  __INIT_VAR(data__->ET,zero,retain);
  __INIT_VAR(data__->RUNNING,FALSE,retain);
  __INIT_VAR(data__->SINCE,zero,retain);
}

void TON_body__(TON *data__) {
  static const TIME zero = {0, 0};
  if (!__GET_VAR(data__->IN)) {
    __SET_VAR(data__->,RUNNING,FALSE);
    __SET_VAR(data__->,ET,zero);
    __SET_VAR(data__->,Q,FALSE);
    return;
  }
  if (!__GET_VAR(data__->RUNNING)) {
    __SET_VAR(data__->,RUNNING,TRUE);
    __SET_VAR(data__->,SINCE,__CURRENT_TIME);
  }
  __SET_VAR(data__->,ET,time_between(__CURRENT_TIME,__GET_VAR(data__->SINCE)));
  if (time_reaches(__GET_VAR(data__->ET),__GET_VAR(data__->PT))) {
    __SET_VAR(data__->,ET,__GET_VAR(data__->PT));
    __SET_VAR(data__->,Q,TRUE);
  }
}

void CTU_init__(CTU *data__, BOOL retain) {
  __INIT_VAR(data__->CU,FALSE,retain);
  __INIT_VAR(data__->R,FALSE,retain);
  __INIT_VAR(data__->PV,0,retain);
  __INIT_VAR(data__->Q,FALSE,retain);
  __INIT_VAR(data__->CV,0,retain);
  __INIT_VAR(data__->BEFORE,FALSE,retain);
}

void CTU_body__(CTU *data__) {
  if (__GET_VAR(data__->R)) {
    __SET_VAR(data__->,CV,0);
  } else if (__GET_VAR(data__->CU) && !__GET_VAR(data__->BEFORE) && __GET_VAR(data__->CV) < 32767) {
    __SET_VAR(data__->,CV,__GET_VAR(data__->CV) + 1);
  }
  __SET_VAR(data__->,BEFORE,__GET_VAR(data__->CU));
  __SET_VAR(data__->,Q,__GET_VAR(data__->CV) >= __GET_VAR(data__->PV));
}

void PI_LOOP_init__(PI_LOOP *data__, BOOL retain) {
  __INIT_VAR(data__->ACTUAL,0,retain);
  __INIT_VAR(data__->SETPOINT,0,retain);
  __INIT_VAR(data__->OUT,0,retain);
  __INIT_VAR(data__->INTEGRAL,0,retain);
}

void PI_LOOP_body__(PI_LOOP *data__) {
  REAL error = __GET_VAR(data__->SETPOINT) - __GET_VAR(data__->ACTUAL);
  __SET_VAR(data__->,OUT,0.8f * error + __GET_VAR(data__->INTEGRAL));
  if (__GET_VAR(data__->OUT) > 100.0f) {
    __SET_VAR(data__->,OUT,100.0f);
  } else if (__GET_VAR(data__->OUT) < 0.0f) {
    __SET_VAR(data__->,OUT,0.0f);
  } else {
    __SET_VAR(data__->,INTEGRAL,__GET_VAR(data__->INTEGRAL) + 0.01f * error);
  }
}

void TANK_init__(TANK *data__, BOOL retain) {
  __INIT_LOCATED(BOOL,__IX0_0,data__->START,retain);
  __INIT_LOCATED_VALUE(data__->START,FALSE);
  __INIT_LOCATED(INT,__IW0,data__->LEVEL,retain);
  __INIT_LOCATED_VALUE(data__->LEVEL,0);
  __INIT_LOCATED(REAL,__ID0,data__->TEMPERATURE,retain);
  __INIT_LOCATED_VALUE(data__->TEMPERATURE,0);
  __INIT_LOCATED(BOOL,__QX0_0,data__->INLET,retain);
  __INIT_LOCATED_VALUE(data__->INLET,FALSE);
  __INIT_LOCATED(BOOL,__QX0_1,data__->OUTLET,retain);
  __INIT_LOCATED_VALUE(data__->OUTLET,FALSE);
  __INIT_LOCATED(REAL,__QD0,data__->HEATER,retain);
  __INIT_LOCATED_VALUE(data__->HEATER,0);
  __INIT_LOCATED(INT,__QW0,data__->BATCHES,retain);
  __INIT_LOCATED_VALUE(data__->BATCHES,0);
  __INIT_LOCATED(USINT,__QB4,data__->PHASE,retain);
  __INIT_LOCATED_VALUE(data__->PHASE,0);
  __INIT_LOCATED(INT,__MW0,data__->LIMIT,retain);
  __INIT_LOCATED_VALUE(data__->LIMIT,80);
  TON_init__(&data__->SOAK,retain);
  CTU_init__(&data__->COUNTED,retain);
  PI_LOOP_init__(&data__->CONTROL,retain);
  __INIT_VAR(data__->STEP,0,retain);
}

void TANK_body__(TANK *data__) {
  static const TIME soak = {1, 500000000};
  if (__GET_VAR(data__->STEP) == 0 && __GET_LOCATED(data__->START)) {
    __SET_VAR(data__->,STEP,1);
  }
  if (__GET_VAR(data__->STEP) == 1 && __GET_LOCATED(data__->LEVEL) >= __GET_LOCATED(data__->LIMIT)) {
    __SET_VAR(data__->,STEP,2);
  }
  __SET_VAR(data__->SOAK.,IN,__GET_VAR(data__->STEP) == 2);
  __SET_VAR(data__->SOAK.,PT,soak);
  TON_body__(&data__->SOAK);
  if (__GET_VAR(data__->STEP) == 2 && __GET_VAR(data__->SOAK.Q)) {
    __SET_VAR(data__->,STEP,3);
  }
  __SET_VAR(data__->COUNTED.,CU,__GET_VAR(data__->STEP) == 3);
  __SET_VAR(data__->COUNTED.,R,FALSE);
  __SET_VAR(data__->COUNTED.,PV,1000);
  CTU_body__(&data__->COUNTED);
  if (__GET_VAR(data__->STEP) == 3 && __GET_LOCATED(data__->LEVEL) <= 5) {
    __SET_VAR(data__->,STEP,0);
  }
  __SET_LOCATED(data__->,INLET,__GET_VAR(data__->STEP) == 1);
  __SET_LOCATED(data__->,OUTLET,__GET_VAR(data__->STEP) == 3);
  if (__GET_VAR(data__->STEP) == 2) {
    __SET_VAR(data__->CONTROL.,ACTUAL,__GET_LOCATED(data__->TEMPERATURE));
    __SET_VAR(data__->CONTROL.,SETPOINT,60.0f);
    PI_LOOP_body__(&data__->CONTROL);
    __SET_LOCATED(data__->,HEATER,__GET_VAR(data__->CONTROL.OUT));
  } else {
    __SET_LOCATED(data__->,HEATER,0.0f);
  }
  __SET_LOCATED(data__->,BATCHES,__GET_VAR(data__->COUNTED.CV));
  __SET_LOCATED(data__->,PHASE,(USINT)__GET_VAR(data__->STEP));
}

void LAMP_init__(LAMP *data__, BOOL retain) {
  __INIT_LOCATED(BOOL,__QX0_2,data__->BLINK,retain);
  __INIT_LOCATED_VALUE(data__->BLINK,FALSE);
}

void LAMP_body__(LAMP *data__) {
  __SET_LOCATED(data__->,BLINK,!__GET_LOCATED(data__->BLINK));
}
