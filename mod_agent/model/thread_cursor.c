/* SPDX-License-Identifier: Apache-2.0 */
/* Positions in a thread's stream; see thread_cursor.h. */
#include "thread_cursor.h"

#include <string.h>

#include <apr_strings.h>

/* Reads up to 18 digits, and no sign, so that a cursor has one spelling. */
static const char *read_number(apr_int64_t *number, const char *text)
{
    size_t length = strspn(text, "0123456789");

    if (length == 0 || length > 18) {
        return NULL;
    }
    *number = apr_strtoi64(text, NULL, 10);
    return text + length;
}

bool agent_thread_cursor_read(agent_thread_cursor_t *cursor, const char *text)
{
    agent_thread_cursor_t read = {0, -1};

    if (strcmp(text, "-") != 0) {
        text = read_number(&read.run, text);
        if (text == NULL || *text++ != '-') {
            return false;
        }
        if (strcmp(text, "-1") != 0) {
            text = read_number(&read.seq, text);
            if (text == NULL || *text != '\0') {
                return false;
            }
        }
    }
    *cursor = read;
    return true;
}
