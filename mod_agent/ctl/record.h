/* SPDX-License-Identifier: Apache-2.0 */
/* Records of the database, printed as lines of columns or as JSON. */
#ifndef AGENT_CTL_RECORD_H
#define AGENT_CTL_RECORD_H

#include <json-c/json.h>

#include "option.h"

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

/* Columns: a text or a list of texts; a time to the second; the state of what
 * has closed_at, used_at, revoked_at or expires_at, for which member is the
 * word when none of them has come. */
const char *ctl_record_text(json_object *record, const char *member,
                            apr_pool_t *pool);
const char *ctl_record_time(json_object *record, const char *member,
                            apr_pool_t *pool);

/* The same to the hour, of a time that is known no better: 2026-11-28T07Z. */
const char *ctl_record_hour(json_object *record, const char *member,
                            apr_pool_t *pool);
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

/* Returns CTL_DONE if all output could be written; else CTL_FAILED, after
 * printing why. */
int ctl_record_flush(void);

#endif
