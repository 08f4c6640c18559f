/* SPDX-License-Identifier: Apache-2.0 */
/* Reads durations. */
#include "duration.h"

#include <stddef.h>
#include <strings.h>

/* A number with this many digits, in the largest unit, fits into 64 bits. */
#define DIGITS_MAX 11

typedef struct unit_t {
    const char *word;
    uint64_t ms;
} unit_t;

static const unit_t units[] = {{"", 1000},     {"ms", 1},      {"s", 1000},
                               {"m", 60000},   {"mi", 60000},  {"min", 60000},
                               {"h", 3600000}, {"d", 86400000}};
#define UNITS (sizeof(units) / sizeof(units[0]))

bool rlr_duration_parse(uint64_t *ms, const char *text)
{
    const char *unit = text;
    uint64_t number = 0;

    while (*unit >= '0' && *unit <= '9' && unit - text < DIGITS_MAX) {
        number = number * 10 + (uint64_t)(*unit++ - '0');
    }
    if (unit == text) {
        return false;
    }
    for (size_t i = 0; i < UNITS; i++) {
        if (strcasecmp(unit, units[i].word) == 0) {
            *ms = number * units[i].ms;
            return true;
        }
    }
    return false;
}
