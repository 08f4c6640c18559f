/* SPDX-License-Identifier: Apache-2.0 */
/* Places in the events of a thread; see thread.h. */
#include <string.h>

#include <apr_strings.h>

#include "thread.h"

/* Digits only, so that a number has one spelling; up to 18 fit. */
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
