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

/* The value of a hexadecimal digit; -1 when the byte is not one. */
static inline int agent_unescape_digit(unsigned char byte)
{
    if (byte >= '0' && byte <= '9') {
        return byte - '0';
    }
    byte |= 32;
    return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

/* Returns the next byte. The caller must not read beyond the end: there is no
 * end mark. */
unsigned char agent_unescape_next(agent_unescape_t *reader);

/* Length of a code point in UTF-8. */
unsigned agent_unescape_size(unsigned code_point);

#endif
