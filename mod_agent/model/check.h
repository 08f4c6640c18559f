/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checks that schema.c's tables are made of. Each looks at one value and
 * refuses it with INVALID and its JSON pointer.
 */
#ifndef AGENT_MODEL_CHECK_H
#define AGENT_MODEL_CHECK_H

#include "../core/error.h"
#include "../core/raw.h"

/* Rows of the largest table of members. */
#define AGENT_CHECK_MEMBERS 32

typedef struct agent_check_t agent_check_t;

/* Where in the body a value stands. Printed only when the value is refused. */
typedef struct agent_json_path_t {
    /* NULL for the body itself. */
    const struct agent_json_path_t *above;
    /* NULL for an element of an array: index is set. */
    const char *key;
    int index;
    agent_error_t **err;
    apr_pool_t *pool;
} agent_json_path_t;

struct agent_check_t {
    const char *key;
    bool required;
    apr_status_t (*check)(const agent_check_t *check, agent_raw_t value,
                          const agent_json_path_t *path);
    /* Words of a choice; members of an object. */
    const char *const *words;
    const agent_check_t *members;
    double low;
    double high;
};

agent_json_path_t agent_json_path_below(const agent_json_path_t *path,
                                        const char *key);
agent_json_path_t agent_json_path_at(const agent_json_path_t *path, int index);

/* Refuses the value: "POINTER: expected EXPECTED." */
apr_status_t agent_check_refuse(const agent_json_path_t *path,
                                const char *expected);

/*
 * Finds the members of a table, which ends in a row without a key, in an
 * object: one value for each row, NONE where it is absent or null.
 */
void agent_check_find(agent_raw_t *values, const agent_check_t *members,
                      agent_raw_t object);

/* Checks what agent_check_find() has found, in the order of the table. */
apr_status_t agent_check_members(const agent_check_t *members,
                                 agent_raw_t *values,
                                 const agent_json_path_t *path);

/* Anything. */
apr_status_t agent_check_any(const agent_check_t *check, agent_raw_t value,
                             const agent_json_path_t *path);

/* An object, with the members of check->members if these are set. */
apr_status_t agent_check_object(const agent_check_t *check, agent_raw_t value,
                                const agent_json_path_t *path);

/* A string of low to high bytes. */
apr_status_t agent_check_text(const agent_check_t *check, agent_raw_t value,
                              const agent_json_path_t *path);

/* true or false. */
apr_status_t agent_check_flag(const agent_check_t *check, agent_raw_t value,
                              const agent_json_path_t *path);

/* A number from low to high, or a whole one. */
apr_status_t agent_check_number(const agent_check_t *check, agent_raw_t value,
                                const agent_json_path_t *path);
apr_status_t agent_check_integer(const agent_check_t *check, agent_raw_t value,
                                 const agent_json_path_t *path);

/* One of the words, or an array of them. */
apr_status_t agent_check_word(const agent_check_t *check, agent_raw_t value,
                              const agent_json_path_t *path);
apr_status_t agent_check_words(const agent_check_t *check, agent_raw_t value,
                               const agent_json_path_t *path);

/* A URL that agent_egress_read_url() takes. */
apr_status_t agent_check_url(const agent_check_t *check, agent_raw_t value,
                             const agent_json_path_t *path);

/* A UUID in either case. */
apr_status_t agent_check_uuid(const agent_check_t *check, agent_raw_t value,
                              const agent_json_path_t *path);

/* An array of strings: any, 64 keys, 1 to AGENT_MANY_RUNS UUIDs. */
apr_status_t agent_check_texts(const agent_check_t *check, agent_raw_t value,
                               const agent_json_path_t *path);
apr_status_t agent_check_keys(const agent_check_t *check, agent_raw_t value,
                              const agent_json_path_t *path);
apr_status_t agent_check_uuids(const agent_check_t *check, agent_raw_t value,
                               const agent_json_path_t *path);

/* "*" or an array of strings. */
apr_status_t agent_check_nodes(const agent_check_t *check, agent_raw_t value,
                               const agent_json_path_t *path);

/* An object within AGENT_METADATA_*. */
apr_status_t agent_check_metadata(const agent_check_t *check, agent_raw_t value,
                                  const agent_json_path_t *path);

#endif
