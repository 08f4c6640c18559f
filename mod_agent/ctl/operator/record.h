/* SPDX-License-Identifier: Apache-2.0 */
/* Records of the database, printed as lines of columns or as JSON. */
#ifndef AGENT_CTL_RECORD_H
#define AGENT_CTL_RECORD_H

#include <json-c/json.h>

#include "../base/option.h"

/* A page of a list: as many records as a function returns at most. */
#define CTL_PAGE 1000

typedef struct ctl_column_t {
    /* NULL after the last one. */
    const char *title;
    int width;
    /* Returns the text, in pool; "" prints as `-`. */
    const char *(*read)(json_object *record, const char *member,
                        apr_pool_t *pool);
    const char *member;
} ctl_column_t;

/* Columns. A text, or a list of texts. */
const char *ctl_record_text(json_object *record, const char *member,
                            apr_pool_t *pool);

/* A time to the second. */
const char *ctl_record_time(json_object *record, const char *member,
                            apr_pool_t *pool);

/* A time that is recorded to the hour: 2026-11-28T07Z. */
const char *ctl_record_hour(json_object *record, const char *member,
                            apr_pool_t *pool);

/* The state of a record: closed, used, revoked or expired, as its times say;
 * else member. */
const char *ctl_record_state(json_object *record, const char *member,
                             apr_pool_t *pool);

/* Reads the page after the record with the id `after` (NULL: the first page)
 * as a JSON array. Returns an exit status. */
typedef int (*ctl_page_t)(const char **body, const ctl_arguments_t *arguments,
                          const char *after);

/* Prints a list, page by page; id: the member that has the id of a record.
 * Returns an exit status. */
int ctl_record_list(const ctl_arguments_t *arguments,
                    const ctl_column_t *columns, const char *id,
                    ctl_page_t read_page);

/* Parses a record that a function returned, in pool; NULL, after printing why,
 * if it is not one. */
json_object *ctl_record_parse(const char *body, apr_pool_t *pool);

/* Prints a record as one line of JSON, in the order of its members. Control
 * characters are escaped. */
void ctl_record_print(json_object *record);

/* Prints what an action on one record has done: the record, with --json, else
 * the text, which may be NULL. Returns an exit status. */
int ctl_record_result(const ctl_arguments_t *arguments, const char *body,
                      const char *text);

/* Something new that the database has, and that nothing shows again. */
typedef struct ctl_new_t {
    /* "key", as the commands are named */
    const char *kind;
    const char *id;
    /* The command that ends it, before the id: "key revoke". */
    const char *end;
    /* Without --json this text is the only line. */
    const char *text;
} ctl_new_t;

/* Prints its record, with --json, else the text. record NULL: the database sent
 * none. A failure names what exists all the same. Returns an exit status. */
int ctl_record_new(const ctl_arguments_t *arguments, json_object *record,
                   const ctl_new_t *made);

#endif
