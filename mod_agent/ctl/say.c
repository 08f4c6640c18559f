/* SPDX-License-Identifier: Apache-2.0 */
/* The output; see say.h. */
#include "say.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* The longest message; what is longer is cut. */
#define MESSAGE_BYTES 65536

/* C0 and DEL, and of UTF-8 C1, whose second byte follows 0xC2. before: the byte
 * before the first one. */
static void replace_controls(char *bytes, apr_size_t length, const char *kept,
                             unsigned char before)
{
    for (apr_size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)bytes[i];
        bool is_c1 = byte >= 0x80 && byte < 0xA0 && before == 0xC2;

        before = byte;
        if (is_c1 || byte == 0x7F
            || (byte < 0x20 && (byte == 0 || strchr(kept, byte) == NULL))) {
            bytes[i] = '?';
            bytes[is_c1 && i > 0 ? i - 1 : i] = '?';
        }
    }
}

/* Prints the variadic arguments of its caller, which follow format. */
#define PRINT(stream, prefix, format)                                          \
    do {                                                                       \
        va_list arguments;                                                     \
        va_start(arguments, format);                                           \
        print(stream, prefix, format, arguments);                              \
        va_end(arguments);                                                     \
    } while (0)

static void print(FILE *stream, const char *prefix, const char *format,
                  va_list arguments) __attribute__((format(printf, 3, 0)));

static void print(FILE *stream, const char *prefix, const char *format,
                  va_list arguments)
{
    char message[MESSAGE_BYTES];
    int length = vsnprintf(message, sizeof(message), format, arguments);

    if (length >= (int)sizeof(message)) {
        length = (int)sizeof(message) - 1;
    }
    replace_controls(message, length > 0 ? (apr_size_t)length : 0, "", 0);
    fflush(stdout);
    fprintf(stream, "%s%s\n", prefix, message);
    fflush(stream);
}

void ctl_error(const char *format, ...)
{
    PRINT(stderr, "agentctl: ", format);
}

void ctl_warn(const char *format, ...)
{
    PRINT(stderr, "agentctl: warning: ", format);
}

void ctl_step(const char *format, ...)
{
    PRINT(stdout, "==> ", format);
}

void ctl_print(const char *format, ...)
{
    PRINT(stdout, "", format);
}

void ctl_relay(FILE *stream, char *bytes, apr_size_t length)
{
    static unsigned char last[2];
    unsigned char *before = &last[stream == stderr];
    unsigned char end = (unsigned char)bytes[length - 1];

    replace_controls(bytes, length, "\n\t", *before);
    *before = end;
    fwrite(bytes, 1, length, stream);
    fflush(stream);
}
