/* SPDX-License-Identifier: Apache-2.0 */
/* Records of the database; see record.h. */
#include "record.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <apr_strings.h>
#include <apr_time.h>

#include "../../core/error.h"
#include "../../core/json.h"
#include "../base/output.h"

/* 2026-11-28T07:30:00 of a time of the database. */
#define SECOND_CHARS 19
/* 2026-11-28T07 */
#define HOUR_CHARS 13

const char *ctl_record_text(json_object *record, const char *member,
                            apr_pool_t *pool)
{
    json_object *value = agent_json_get(record, member);
    const char *text = "";

    if (!json_object_is_type(value, json_type_array)) {
        return agent_json_string(record, member, "");
    }
    /* Bounded: by the four scopes of an API key. */
    for (size_t i = 0; i < json_object_array_length(value); i++) {
        text = apr_pstrcat(
            pool, text, i > 0 ? "," : "",
            json_object_get_string(json_object_array_get_idx(value, i)), NULL);
    }
    return text;
}

const char *ctl_record_time(json_object *record, const char *member,
                            apr_pool_t *pool)
{
    const char *time = agent_json_string(record, member, "");

    return *time != '\0' ? apr_psprintf(pool, "%.*sZ", SECOND_CHARS, time)
                         : time;
}

const char *ctl_record_hour(json_object *record, const char *member,
                            apr_pool_t *pool)
{
    const char *time = agent_json_string(record, member, "");

    return *time != '\0' ? apr_psprintf(pool, "%.*sZ", HOUR_CHARS, time) : time;
}

/* The time in the form in which the database shows times, to the second. */
static const char *now(apr_pool_t *pool)
{
    apr_time_exp_t t;

    apr_time_exp_gmt(&t, apr_time_now());
    return apr_psprintf(pool, "%04d-%02d-%02dT%02d:%02d:%02d.",
                        t.tm_year + 1900, t.tm_mon + 1, t.tm_mday, t.tm_hour,
                        t.tm_min, t.tm_sec);
}

const char *ctl_record_state(json_object *record, const char *member,
                             apr_pool_t *pool)
{
    const char *revoked = agent_json_string(record, "revoked_at", NULL);
    const char *expires = agent_json_string(record, "expires_at", NULL);

    if (agent_json_get(record, "closed_at") != NULL) {
        return "closed";
    }
    if (agent_json_get(record, "used_at") != NULL) {
        return "used";
    }
    /* Texts of one form: their order is that of the times. An expired key
     * is revoked later. */
    if (revoked != NULL && (expires == NULL || strcmp(revoked, expires) < 0)) {
        return "revoked";
    }
    return expires != NULL && strcmp(expires, now(pool)) <= 0 ? "expired"
                                                              : member;
}

json_object *ctl_record_parse(const char *body, apr_pool_t *pool)
{
    json_object *record = body != NULL
        ? agent_json_own(json_tokener_parse(body), pool)
        : NULL;

    if (record == NULL) {
        ctl_error("the database sent something else than a record (%s)",
                  agent_error_code(AGENT_E_INTERNAL));
    }
    return record;
}

/* One line: the names of the columns, if record is NULL. Names of accounts and
 * keys are others' texts: ctl_print() replaces control characters. */
static void print_line(json_object *record, const ctl_column_t *columns,
                       apr_pool_t *pool)
{
    const char *line = "";

    /* Bounded: by the columns. */
    for (const ctl_column_t *c = columns; c->title != NULL; c++) {
        const char *text = record != NULL ? c->read(record, c->member, pool)
                                          : c->title;

        line = apr_psprintf(
            pool, "%s%-*s%s", line, c[1].title != NULL ? c->width : 0,
            *text != '\0' ? text : "-", c[1].title != NULL ? "  " : "");
    }
    ctl_print("%s", line);
}

void ctl_record_print(json_object *record)
{
    ctl_print(
        "%s",
        json_object_to_json_string_ext(
            record, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
}

int ctl_record_result(const ctl_arguments_t *arguments, const char *body,
                      const char *text)
{
    json_object *record;

    if (arguments->flag[CTL_JSON]) {
        record = ctl_record_parse(body, arguments->pool);
        if (record == NULL) {
            return CTL_FAILED;
        }
        ctl_record_print(record);
    }
    else if (text != NULL) {
        ctl_print("%s", text);
    }
    return ctl_output_flush();
}

int ctl_record_new(const ctl_arguments_t *arguments, json_object *record,
                   const ctl_new_t *made)
{
    int status = CTL_FAILED;

    if (record != NULL) {
        if (arguments->flag[CTL_JSON]) {
            ctl_record_print(record);
        }
        else {
            ctl_print("%s", made->text);
        }
        status = ctl_output_flush();
    }
    if (status != CTL_DONE) {
        ctl_error("the %s exists and was not shown: end it with "
                  "`agentctl %s %s` (%s_not_shown)",
                  made->kind, made->end, made->id, made->kind);
    }
    return status;
}

/* Prints a page. Returns the id of its last record; NULL if it has none. */
static const char *print_page(const ctl_arguments_t *arguments,
                              json_object *page, const ctl_column_t *columns,
                              const char *id)
{
    const char *last = NULL;

    for (size_t i = 0; i < json_object_array_length(page); i++) {
        json_object *record = json_object_array_get_idx(page, i);

        if (arguments->flag[CTL_JSON]) {
            ctl_record_print(record);
        }
        else {
            print_line(record, columns, arguments->pool);
        }
        last = agent_json_string(record, id, NULL);
    }
    return last;
}

int ctl_record_list(const ctl_arguments_t *arguments,
                    const ctl_column_t *columns, const char *id,
                    ctl_page_t read_page)
{
    const char *after = NULL;
    bool has_titles = arguments->flag[CTL_JSON];

    do {
        json_object *page;
        const char *body;

        if (read_page(&body, arguments, after) != CTL_DONE) {
            return CTL_FAILED;
        }
        page = ctl_record_parse(body, arguments->pool);
        if (page == NULL) {
            return CTL_FAILED;
        }
        if (!has_titles) {
            print_line(NULL, columns, arguments->pool);
            has_titles = true;
        }
        after = print_page(arguments, page, columns, id);
    } while (after != NULL);
    return ctl_output_flush();
}
