/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of schema.c's tables, and their checks. Each checks one value; the
 * error is INVALID with the value's JSON pointer.
 */
#ifndef AGENT_MODEL_CHECK_H
#define AGENT_MODEL_CHECK_H

#include "../core/error.h"
#include "../core/raw.h"

/* The largest number of rows of a table of members. */
#define AGENT_CHECK_MEMBERS 32

typedef struct agent_check_t agent_check_t;

/* The position of a value in the body, printed only for an error, and where the
 * error goes. */
typedef struct agent_check_path_t {
    /* NULL for the body itself. */
    const struct agent_check_path_t *above;
    /* NULL for an element of an array: index is set. */
    const char *key;
    int index;
    agent_error_t **err;
    apr_pool_t *pool;
} agent_check_path_t;

/* A row of a table: a member of an object and the check of its value. */
struct agent_check_t {
    /* NULL ends the table. */
    const char *key;
    /* Absent or null is an error. */
    bool required;
    apr_status_t (*check)(const agent_check_t *check, agent_raw_t value,
                          const agent_check_path_t *path);
    /* Parameters of the check: the words of a choice, NULL-terminated; the
     * table of an object; the bounds of a number, a length in bytes or a count
     * of elements, inclusive. */
    const char *const *words;
    const agent_check_t *members;
    double low;
    double high;
};

/* Return the position of a member, or of an element, of the value at path; path
 * is borrowed. */
agent_check_path_t agent_check_path_below(const agent_check_path_t *path,
                                          const char *key);
agent_check_path_t agent_check_path_at(const agent_check_path_t *path,
                                       int index);

/* Sets the error "POINTER: expected EXPECTED." and returns it. */
apr_status_t agent_check_refuse(const agent_check_path_t *path,
                                const char *expected);

/* Finds the members of a table, which ends with a row without a key, in an
 * object. values: zeroed, one for each row; they stay NONE for members that are
 * absent or null. */
void agent_check_find(agent_raw_t *values, const agent_check_t *members,
                      agent_raw_t object);

/* Checks the values of agent_check_find() in the order of the table. */
apr_status_t agent_check_members(const agent_check_t *members,
                                 agent_raw_t *values,
                                 const agent_check_path_t *path);

/* Accepts the values that mean the default: false, "", [] and {}. For members
 * of the API that this release does not support. */
apr_status_t agent_check_unsupported(const agent_check_t *check,
                                     agent_raw_t value,
                                     const agent_check_path_t *path);

/* Accepts any value. */
apr_status_t agent_check_any(const agent_check_t *check, agent_raw_t value,
                             const agent_check_path_t *path);

/* Accepts an object; with check->members, also its members. */
apr_status_t agent_check_object(const agent_check_t *check, agent_raw_t value,
                                const agent_check_path_t *path);

/* Accepts an object of at most 64 KB and 256 members; events repeat some. */
apr_status_t agent_check_configurable(const agent_check_t *check,
                                      agent_raw_t value,
                                      const agent_check_path_t *path);

/* Accepts an object or an array. */
apr_status_t agent_check_values(const agent_check_t *check, agent_raw_t value,
                                const agent_check_path_t *path);

/* Accepts an array of low to high objects with check->members. */
apr_status_t agent_check_objects(const agent_check_t *check, agent_raw_t value,
                                 const agent_check_path_t *path);

/* Accepts a string of low to high bytes. */
apr_status_t agent_check_text(const agent_check_t *check, agent_raw_t value,
                              const agent_check_path_t *path);

/* Accepts true or false. */
apr_status_t agent_check_flag(const agent_check_t *check, agent_raw_t value,
                              const agent_check_path_t *path);

/* Accept a number, or an integer, from low to high. */
apr_status_t agent_check_number(const agent_check_t *check, agent_raw_t value,
                                const agent_check_path_t *path);
apr_status_t agent_check_integer(const agent_check_t *check, agent_raw_t value,
                                 const agent_check_path_t *path);

/* Accepts a time to live: minutes, up to ten years. */
apr_status_t agent_check_minutes(const agent_check_t *check, agent_raw_t value,
                                 const agent_check_path_t *path);

/* Accept one of the words; one of them or an array of them. */
apr_status_t agent_check_word(const agent_check_t *check, agent_raw_t value,
                              const agent_check_path_t *path);
apr_status_t agent_check_words(const agent_check_t *check, agent_raw_t value,
                               const agent_check_path_t *path);

/* Accepts a URL that agent_egress_read_url() accepts. */
apr_status_t agent_check_url(const agent_check_t *check, agent_raw_t value,
                             const agent_check_path_t *path);

/* Accepts a UUID in either case. */
apr_status_t agent_check_uuid(const agent_check_t *check, agent_raw_t value,
                              const agent_check_path_t *path);

/* Accept an array of: strings; up to 64 strings of 1 to 64 bytes; 1 to high
 * UUIDs. */
apr_status_t agent_check_texts(const agent_check_t *check, agent_raw_t value,
                               const agent_check_path_t *path);
apr_status_t agent_check_keys(const agent_check_t *check, agent_raw_t value,
                              const agent_check_path_t *path);
apr_status_t agent_check_uuids(const agent_check_t *check, agent_raw_t value,
                               const agent_check_path_t *path);

/* Accepts "*" or an array of strings. */
apr_status_t agent_check_nodes(const agent_check_t *check, agent_raw_t value,
                               const agent_check_path_t *path);

/* Accepts an object of up to 64 members: names of 1 to 64 bytes, values of up
 * to 512 bytes. */
apr_status_t agent_check_metadata(const agent_check_t *check, agent_raw_t value,
                                  const agent_check_path_t *path);

/* Accepts metadata as agent_check_metadata(), for a search of records that
 * contain it; its arrays have at most 64 elements together. */
apr_status_t agent_check_filter(const agent_check_t *check, agent_raw_t value,
                                const agent_check_path_t *path);

#endif
