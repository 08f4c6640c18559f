/* SPDX-License-Identifier: Apache-2.0 */
/* The output; see output.h. */
#include "output.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
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

static bool is_apart;

static FILE *get_output(void)
{
    return is_apart ? stderr : stdout;
}

/* Prints the variadic arguments of its caller, which follow format. */
#define PRINT(lines, stream, prefix, format)                                   \
    do {                                                                       \
        va_list arguments;                                                     \
        va_start(arguments, format);                                           \
        print(lines, stream, prefix, format, arguments);                       \
        va_end(arguments);                                                     \
    } while (0)

static void print(json_object *lines, FILE *stream, const char *prefix,
                  const char *format, va_list arguments)
    __attribute__((format(printf, 4, 0)));

/* Adds the message to lines, which may be NULL. */
static void print(json_object *lines, FILE *stream, const char *prefix,
                  const char *format, va_list arguments)
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
    if (lines != NULL) {
        json_object_array_add(lines, json_object_new_string(message));
    }
}

void ctl_error(const char *format, ...)
{
    PRINT(NULL, stderr, "agentctl: ", format);
}

void ctl_warn(const char *format, ...)
{
    PRINT(NULL, stderr, "agentctl: warning: ", format);
}

void ctl_step(const char *format, ...)
{
    PRINT(NULL, get_output(), "==> ", format);
}

void ctl_print(const char *format, ...)
{
    PRINT(NULL, get_output(), "", format);
}

void ctl_directive(json_object *lines, const char *format, ...)
{
    PRINT(lines, get_output(), "", format);
}

void ctl_output_divert(void)
{
    is_apart = true;
}

/* Names may have control characters of two bytes, which JSON does not escape.
 */
void ctl_output_record(json_object *record)
{
    char *text = strdup(json_object_to_json_string_ext(
        record, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));

    if (text != NULL) {
        replace_controls(text, strlen(text), "", 0);
        fprintf(stdout, "%s\n", text);
        free(text);
    }
}

int ctl_output_flush(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout)) {
        return CTL_DONE;
    }
    ctl_error("standard output: %s (output_failed)", strerror(errno));
    return CTL_FAILED;
}

void ctl_relay(FILE *stream, char *bytes, apr_size_t length)
{
    static unsigned char last[2];
    unsigned char *before = &last[stream == stderr];
    unsigned char end = (unsigned char)bytes[length - 1];

    replace_controls(bytes, length, "\n\t", *before);
    *before = end;
    stream = stream == stdout ? get_output() : stream;
    fwrite(bytes, 1, length, stream);
    fflush(stream);
}
