/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes that a JSON string stands for, one by one, without a copy. The
 * string must have passed the scan (scan.h).
 */
#ifndef AGENT_CORE_UNESCAPE_H
#define AGENT_CORE_UNESCAPE_H

#include <stddef.h>

/* Starts as {.at = the byte after the opening quote}. */
typedef struct agent_unescape_t {
    const char *at;
    /* Bytes of an escape that are still to be given, in reverse order. */
    unsigned char rest[4];
    unsigned left;
} agent_unescape_t;

/* The next byte. The caller knows how many there are. */
unsigned char agent_unescape_next(agent_unescape_t *reader);

/* Bytes of UTF-8 that a code point takes. */
unsigned agent_unescape_size(unsigned code_point);

#endif
