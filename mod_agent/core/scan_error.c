/* SPDX-License-Identifier: Apache-2.0 */
/* The location of the error of a scan, and its reason; see scan.h. */
#include "scan.h"

#include <apr_strings.h>

static const char *escape_key(const agent_scan_level_t *level, apr_pool_t *pool)
{
    /* Enough to identify the key, which may be megabytes long. */
    size_t length = level->key_length < 64 ? level->key_length : 64;
    char *out = apr_palloc(pool, 2 * length + 1);
    char *p = out;

    /* Does not cut within a UTF-8 sequence. */
    while (length > 0 && length < level->key_length
           && ((unsigned char)level->key[length] & 0xc0) == 0x80) {
        length--;
    }
    for (size_t i = 0; i < length; i++) {
        char c = level->key[i];

        if (c == '~' || c == '/') {
            *p++ = '~';
            c = c == '~' ? '0' : '1';
        }
        *p++ = c;
    }
    *p = '\0';
    return out;
}

const char *agent_scan_pointer(const agent_scan_t *scan, apr_pool_t *pool)
{
    const char *pointer = "";

    /* Bounded: at most sixteen levels are named. */
    for (unsigned i = 0; i < scan->depth && i < 16; i++) {
        const agent_scan_level_t *level = &scan->levels[i];

        if (level->count == 0) {
            break;
        }
        if (!level->is_object) {
            pointer = apr_psprintf(pool, "%s/%" APR_SIZE_T_FMT, pointer,
                                   level->count - 1);
        }
        else if (level->key != NULL) {
            pointer = apr_pstrcat(pool, pointer, "/", escape_key(level, pool),
                                  NULL);
        }
    }
    return pointer;
}

const char *agent_scan_reason(agent_scan_code_t code)
{
    switch (code) {
    case AGENT_SCAN_OK:
        return "is well-formed";
    case AGENT_SCAN_UTF8:
        return "is not valid UTF-8";
    case AGENT_SCAN_NUL:
        return "contains the character U+0000, which cannot be stored";
    case AGENT_SCAN_SURROGATE:
        return "contains an unpaired surrogate";
    case AGENT_SCAN_NUMBER:
        return "contains a number of more than 40 digits (in a runner's line "
               "348 without an exponent) or with an exponent beyond 308";
    case AGENT_SCAN_TOO_DEEP:
        return "is nested deeper than 128 levels (in a request 120)";
    case AGENT_SCAN_TOO_HEAVY:
        return "has too many values: in memory it would take more than the "
               "limit (in a request 96 MB; an object counts as 800 bytes, an "
               "array as 160, any other value as about 100)";
    case AGENT_SCAN_DUPLICATE:
        return "is a duplicate key";
    default:
        return "is not JSON";
    }
}
