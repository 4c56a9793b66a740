/* cases.h - all cases of the battery, for the CAPACITY that the program has defined. */
#ifndef CCC_TESTS_BATTERY_CASES_H
#define CCC_TESTS_BATTERY_CASES_H

#include "battery.h"

static const size_t capacity = CAPACITY;

/* In this order: the later ones use the functions of the first. */
#include "cases_transfer.h"

#include "cases_close.h"
#include "cases_end.h"
#include "cases_time.h"

#endif
