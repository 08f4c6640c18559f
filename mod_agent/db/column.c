/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays in binary format: array_recv() of PostgreSQL reads them; column.h. */
#include "column.h"

#include <string.h>

#include <arpa/inet.h>

/* The header of an array: number of dimensions, whether it has nulls, type of
 * the elements; then the length of the one dimension and its first subscript.
 * An empty array has no dimension. */
enum { DIMENSIONS, HAS_NULL, TYPE, LENGTH, FIRST, HEADER };
#define EMPTY LENGTH

#define NULL_LENGTH UINT32_MAX

void agent_db_column_init(agent_db_column_t *column, agent_db_type_t type,
                          apr_pool_t *pool)
{
    static const apr_uint32_t header[HEADER];

    memset(column, 0, sizeof(*column));
    column->type = type;
    agent_buffer_init(&column->bytes, pool);
    agent_buffer_append(&column->bytes, (const char *)header, sizeof(header));
}

static void append(agent_db_column_t *column, const void *bytes,
                   apr_size_t length)
{
    apr_uint32_t prefix = htonl((apr_uint32_t)length);

    agent_buffer_append(&column->bytes, (const char *)&prefix, sizeof(prefix));
    agent_buffer_append(&column->bytes, bytes, length);
    column->count++;
}

void agent_db_column_null(agent_db_column_t *column)
{
    apr_uint32_t prefix = NULL_LENGTH;

    agent_buffer_append(&column->bytes, (const char *)&prefix, sizeof(prefix));
    column->has_null = true;
    column->count++;
}

void agent_db_column_text(agent_db_column_t *column, const char *text,
                          apr_size_t length)
{
    append(column, text, length);
}

void agent_db_column_number(agent_db_column_t *column, apr_int64_t number)
{
    apr_uint64_t bits = (apr_uint64_t)number;
    apr_uint32_t words[2] = {htonl((apr_uint32_t)(bits >> 32)),
                             htonl((apr_uint32_t)bits)};

    if (column->type == AGENT_DB_BIGINT) {
        append(column, words, sizeof(words));
    }
    else {
        append(column, &words[1], sizeof(words[1]));
    }
}

void agent_db_column_boolean(agent_db_column_t *column, bool value)
{
    append(column, value ? "\1" : "\0", 1);
}

static unsigned digit_of(char c)
{
    return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
}

void agent_db_column_uuid(agent_db_column_t *column, const char *text)
{
    unsigned char bytes[16];
    const char *at = text;

    if (*text == '\0') {
        agent_db_column_null(column);
        return;
    }
    for (apr_size_t i = 0; i < sizeof(bytes); i++) {
        at += *at == '-';
        bytes[i] = (unsigned char)(digit_of(at[0]) << 4 | digit_of(at[1]));
        at += 2;
    }
    append(column, bytes, sizeof(bytes));
}

const char *agent_db_column_end(agent_db_column_t *column, int *length)
{
    const apr_uint32_t header[HEADER] = {
        [DIMENSIONS] = htonl(column->count > 0 ? 1 : 0),
        [HAS_NULL] = htonl(column->has_null ? 1 : 0),
        [TYPE] = htonl(column->type),
        [LENGTH] = htonl(column->count),
        [FIRST] = htonl(1)};
    char *bytes = agent_buffer_text(&column->bytes);

    memcpy(bytes, header, sizeof(header));
    *length = column->count > 0 ? (int)agent_buffer_length(&column->bytes)
                                : (int)(EMPTY * sizeof(*header));
    return bytes;
}
