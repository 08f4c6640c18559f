/* SPDX-License-Identifier: Apache-2.0 */
/* A recursive-descent parser that evaluates while it reads; its depth is
 * bounded. */
#include "calculator.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <apr_lib.h>
#include <apr_strings.h>

#define DEPTH_MAX    64
#define EXPONENT_MAX 1024
/* 2^53: every whole number up to here is a double. */
#define WHOLE_MAX 9007199254740992.0
/* DBL_DIG: the decimal digits that a double preserves. */
#define DIGITS 15
/* The longest number, with its NUL. */
#define NUMBER_SIZE 64

typedef struct reader_t {
    const char *text;
    const char *at;
    int depth;
    /* The first error; NULL when there is none. */
    const char *problem;
} reader_t;

static double read_sum(reader_t *reader);

static double fail(reader_t *reader, const char *problem)
{
    if (reader->problem == NULL) {
        reader->problem = problem;
    }
    return 0;
}

/* The next character after white space, without consuming it. */
static char peek(reader_t *reader)
{
    while (apr_isspace(*reader->at)) {
        reader->at++;
    }
    return *reader->at;
}

static bool take(reader_t *reader, char wanted)
{
    if (peek(reader) != wanted) {
        return false;
    }
    reader->at++;
    return true;
}

/* Decimal digits with an optional fraction and exponent: strtod() alone would
 * also take hexadecimal, "inf" and "nan". */
static double read_number(reader_t *reader)
{
    const char *start = reader->at;
    size_t length = strspn(start, "0123456789.");
    size_t digits;
    char copy[NUMBER_SIZE];
    char *end;
    double value;

    if (start[length] == 'e' || start[length] == 'E') {
        digits = length + 1;
        digits += start[digits] == '+' || start[digits] == '-';
        if (apr_isdigit(start[digits])) {
            length = digits + strspn(start + digits, "0123456789");
        }
    }
    if (length >= sizeof(copy)) {
        return fail(reader, "a number is too long");
    }
    memcpy(copy, start, length);
    copy[length] = '\0';
    value = strtod(copy, &end);
    if (length == 0 || *end != '\0' || end == copy) {
        return fail(reader, "expected a number");
    }
    reader->at += length;
    return value;
}

static double read_primary(reader_t *reader)
{
    double value;

    if (!take(reader, '(')) {
        return read_number(reader);
    }
    value = read_sum(reader);
    if (reader->problem == NULL && !take(reader, ')')) {
        return fail(reader, "expected \")\"");
    }
    return value;
}

static double read_signed(reader_t *reader);

/* True when value is a whole number that a double holds exactly. */
static bool is_whole(double value)
{
    return value >= -WHOLE_MAX && value <= WHOLE_MAX
        && value == (double)(long long)value;
}

static double raise_to(reader_t *reader, double base, double exponent)
{
    double result = 1;
    int times;

    if (!is_whole(exponent) || exponent > EXPONENT_MAX
        || exponent < -EXPONENT_MAX) {
        return fail(reader, "an exponent is a whole number up to 1024");
    }
    times = (int)(exponent < 0 ? -exponent : exponent);
    for (int i = 0; i < times; i++) {
        result *= base;
    }
    return exponent < 0 ? 1 / result : result;
}

/* 2 ^ -1 is allowed, and 2 ^ 3 ^ 2 is 2 ^ 9. */
static double read_power(reader_t *reader)
{
    double base = read_primary(reader);

    if (reader->problem == NULL && take(reader, '^')) {
        return raise_to(reader, base, read_signed(reader));
    }
    return base;
}

static double read_signed(reader_t *reader)
{
    double value;

    if (reader->depth == DEPTH_MAX) {
        return fail(reader, "too many parentheses or signs");
    }
    reader->depth++;
    if (take(reader, '-')) {
        value = -read_signed(reader);
    }
    else if (take(reader, '+')) {
        value = read_signed(reader);
    }
    else {
        value = read_power(reader);
    }
    reader->depth--;
    return value;
}

static double divide(reader_t *reader, double left, double right)
{
    return right == 0 ? fail(reader, "division by zero") : left / right;
}

/* As in C: the remainder has the sign of left. */
static double find_remainder(reader_t *reader, double left, double right)
{
    if (!is_whole(left) || !is_whole(right)) {
        return fail(reader, "a remainder is of whole numbers");
    }
    return right == 0 ? fail(reader, "division by zero")
                      : (double)((long long)left % (long long)right);
}

static double read_product(reader_t *reader)
{
    double value = read_signed(reader);

    while (reader->problem == NULL) {
        if (take(reader, '*')) {
            value *= read_signed(reader);
        }
        else if (take(reader, '/')) {
            value = divide(reader, value, read_signed(reader));
        }
        else if (take(reader, '%')) {
            value = find_remainder(reader, value, read_signed(reader));
        }
        else {
            break;
        }
    }
    return value;
}

static double read_sum(reader_t *reader)
{
    double value = read_product(reader);

    while (reader->problem == NULL) {
        if (take(reader, '+')) {
            value += read_product(reader);
        }
        else if (take(reader, '-')) {
            value -= read_product(reader);
        }
        else {
            break;
        }
    }
    return value;
}

apr_status_t runner_calculator_run(const char **result, const char *expression,
                                   apr_pool_t *pool)
{
    reader_t reader = {expression, expression, 0, NULL};
    double value = read_sum(&reader);
    char text[NUMBER_SIZE];

    if (reader.problem == NULL && peek(&reader) != '\0') {
        fail(&reader, "expected an operator");
    }
    if (reader.problem != NULL) {
        *result = apr_psprintf(pool, "%s at character %d", reader.problem,
                               (int)(reader.at - reader.text) + 1);
        return APR_EGENERAL;
    }
    if (!isfinite(value)) {
        *result = "the result is not a number";
        return APR_EGENERAL;
    }
    /* 0 + value turns -0 into 0; APR's own %g would drop the 0 of 0.5. */
    snprintf(text, sizeof(text), "%.*g", DIGITS, 0.0 + value);
    *result = apr_pstrdup(pool, text);
    return APR_SUCCESS;
}
