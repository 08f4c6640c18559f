/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `SetHandler ratelimit-status`: the counters of all rules, for people, for
 * programs and for Prometheus; the question which rule a request would hit and
 * what is left; the reset of one key. Who may see it is `Require`'s business.
 *
 * status.c answers, status_ask.c reads questions, status_html.c, status_json.c
 * and status_metrics.c print.
 */
#ifndef RLR_STATUS_H
#define RLR_STATUS_H

#include <httpd.h>

#include "../decision/decide.h"
#include "../decision/subject.h"
#include "../counter/walk.h"

/* A rule in a region. */
typedef struct rlr_status_row_t {
    const rlr_rule_t *rule;
    rlr_limit_t limit;
    /* on, dry-run, off, or mixed: it differs between virtual hosts. */
    const char *engine;
    rlr_counters_t counters;
    uint32_t live_keys;
} rlr_status_row_t;

typedef struct rlr_status_region_t {
    const char *region;
    apr_array_header_t *rows; /* of rlr_status_row_t */
    /* New identities let in and held back; limit.count 0: no such brake. */
    rlr_limit_t brake;
    rlr_counters_t brake_counters;
} rlr_status_region_t;

typedef struct rlr_status_t {
    apr_array_header_t *regions; /* of rlr_status_region_t */
    uint32_t live_keys;
    uint32_t capacity;
} rlr_status_t;

/* What was asked for, and what came of it. */
typedef struct rlr_status_answer_t {
    /* A sentence for a question that cannot be answered, or NULL. */
    const char *problem;
    const rlr_site_t *site;
    rlr_subject_t subject;
    /* The question's method and path in rlr_subject_t; its verdict, or NULL
     * when nothing was asked. */
    const rlr_verdict_t *verdict;
    /* Who it is about, for people. */
    const char *identity;
    /* Counters that were reset; -1: no reset was asked for. */
    int reset;
} rlr_status_answer_t;

/* The handler hook. */
int rlr_status_handle(request_rec *r);

/* Reads a question (GET with a query, POST with a form) and answers it; `form`
 * has its parameters. */
void rlr_status_ask(rlr_status_answer_t *answer, request_rec *r,
                    const apr_table_t *form);

void rlr_status_print_html(request_rec *r, const rlr_status_t *status,
                           const rlr_status_answer_t *answer);
void rlr_status_print_json(request_rec *r, const rlr_status_t *status);
void rlr_status_print_json_answer(request_rec *r,
                                  const rlr_status_answer_t *answer);
void rlr_status_print_metrics(request_rec *r, const rlr_status_t *status);

#endif
