/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unescapes a JSON string byte by byte, without a copy. The string must have
 * passed the scan (scan.h).
 */
#ifndef AGENT_CORE_UNESCAPE_H
#define AGENT_CORE_UNESCAPE_H

#include <stddef.h>

/* Starts as {.at = the byte after the opening quote}. */
typedef struct agent_unescape_t {
    const char *at;
    /* Remaining bytes of an escape, in reverse order. */
    unsigned char rest[4];
    unsigned left;
} agent_unescape_t;

/* Reads the four hexadecimal digits of a UTF-16 code unit before end, and
 * advances *at past them; -1 if there are fewer, with *at after the last. */
int agent_unescape_unit(const char **at, const char *end);

/* Returns the next byte. The caller must stop at the end of the string, which
 * is not detected. */
unsigned char agent_unescape_next(agent_unescape_t *reader);

/* Returns the length of a code point in UTF-8. */
unsigned agent_unescape_size(unsigned code_point);

#endif
