/* The part of the IEC 61131-3 library that the example uses, written for it to MATIEC's interface. A project of yours
 * brings MATIEC's own folder lib. */
#ifndef IEC_STD_LIB_H
#define IEC_STD_LIB_H

#include <stdint.h>

typedef uint8_t BOOL, IEC_BOOL, USINT, IEC_USINT, BYTE, IEC_BYTE;
typedef int16_t INT, IEC_INT;
typedef uint16_t UINT, IEC_UINT;
typedef uint32_t UDINT, IEC_UDINT;
typedef uint64_t ULINT, IEC_ULINT;
typedef float REAL, IEC_REAL;
typedef struct {
	long tv_sec, tv_nsec;
} TIME;

#define TRUE 1
#define FALSE 0

extern TIME __CURRENT_TIME;

static inline TIME time_between(TIME later, TIME earlier)
{
	TIME span = {later.tv_sec - earlier.tv_sec, later.tv_nsec - earlier.tv_nsec};

	if (span.tv_nsec < 0) {
		span.tv_nsec += 1000000000;
		span.tv_sec -= 1;
	}
	return span;
}

static inline BOOL time_reaches(TIME span, TIME limit)
{
	return span.tv_sec > limit.tv_sec || (span.tv_sec == limit.tv_sec && span.tv_nsec >= limit.tv_nsec);
}

#endif
