/* SPDX-License-Identifier: Apache-2.0 */
/* The three formats of the status page. Each function writes the body of the
 * response; the caller sets its headers. */
#ifndef RLR_PRINT_H
#define RLR_PRINT_H

#include "query.h"
#include "status.h"

/* html.c: the page, with the result of a query if there is one. */
void rlr_print_html(request_rec *r, const rlr_status_t *status,
                    const rlr_query_t *query);
/* json.c: the numbers as one object, or the result of a query. */
void rlr_print_json(request_rec *r, const rlr_status_t *status);
void rlr_print_json_query(request_rec *r, const rlr_query_t *query);
/* metrics.c: the numbers in the text format of Prometheus. */
void rlr_print_metrics(request_rec *r, const rlr_status_t *status);

#endif
