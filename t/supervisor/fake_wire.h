/* SPDX-License-Identifier: Apache-2.0 */
/* The fake runner's pipe to the supervisor. */
#ifndef FAKE_WIRE_H
#define FAKE_WIRE_H

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define OUT_FD 4

static void put(const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t done = write(OUT_FD, bytes, length);

        if (done < 0 && errno != EINTR) {
            exit(1);
        }
        bytes += done > 0 ? done : 0;
        length -= done > 0 ? (size_t)done : 0;
    }
}

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *format, ...)
{
    char *text;
    va_list args;
    int length;

    va_start(args, format);
    length = vasprintf(&text, format, args);
    va_end(args);
    text[length] = '\n';
    put(text, (size_t)length + 1);
    free(text);
}

#endif
