/* SPDX-License-Identifier: Apache-2.0 */
/* Writing log lines without blocking. */
#include "log.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <apr_strings.h>

/* PIPE_BUF: a pipe that is ready accepts this many bytes without blocking. */
#define LINE_SIZE 4096

static void write_line(const char *line, size_t length)
{
    struct pollfd descriptor = {STDERR_FILENO, POLLOUT, 0};
    ssize_t written;

    if (poll(&descriptor, 1, 0) != 1 || (descriptor.revents & POLLOUT) == 0) {
        return;
    }
    written = write(STDERR_FILENO, line, length);
    /* There is nowhere to report an error. */
    (void)written;
}

void runner_log_write(const char *run_id, const char *format, ...)
{
    char line[LINE_SIZE];
    size_t length = 0;
    va_list args;

    if (run_id != NULL) {
        length = (size_t)snprintf(line, sizeof(line), "run %.36s: ", run_id);
    }
    va_start(args, format);
    apr_vsnprintf(line + length, sizeof(line) - 1 - length, format, args);
    va_end(args);
    length = strlen(line);
    for (size_t i = 0; i < length; i++) {
        if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f) {
            line[i] = ' ';
        }
    }
    line[length++] = '\n';
    write_line(line, length);
}
