/* SPDX-License-Identifier: Apache-2.0 */
/* The output; see say.h. */
#include "say.h"

#include <stdarg.h>
#include <stdio.h>

static void print(FILE *stream, const char *prefix, const char *format,
                  va_list arguments)
{
    fflush(stdout);
    fputs(prefix, stream);
    vfprintf(stream, format, arguments);
    fputc('\n', stream);
    fflush(stream);
}

void ctl_error(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    print(stderr, "agentctl: ", format, arguments);
    va_end(arguments);
}

void ctl_warn(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    print(stderr, "agentctl: warning: ", format, arguments);
    va_end(arguments);
}

void ctl_step(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    print(stdout, "==> ", format, arguments);
    va_end(arguments);
}
