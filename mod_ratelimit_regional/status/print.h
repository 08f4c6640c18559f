/* SPDX-License-Identifier: Apache-2.0 */
/* The formats of the status page: html.c, json.c, metrics.c. */
#ifndef RLR_PRINT_H
#define RLR_PRINT_H

#include "query.h"
#include "status.h"

void rlr_html_print(request_rec *r, const rlr_status_t *status,
                    const rlr_query_t *query);
void rlr_json_print(request_rec *r, const rlr_status_t *status);
void rlr_json_print_query(request_rec *r, const rlr_query_t *query);
void rlr_metrics_print(request_rec *r, const rlr_status_t *status);

#endif
