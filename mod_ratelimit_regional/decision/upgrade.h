/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request that asks for HTTP/2 ("Upgrade: h2c"). Where httpd agrees it comes
 * by twice: as it was sent, and as the first stream of the new connection. It
 * is one request, and was charged the first time.
 */
#ifndef RLR_UPGRADE_H
#define RLR_UPGRADE_H

#include "decide.h"

/* Remembers the verdict on a request that may come by again. */
void rlr_upgrade_note(request_rec *r, const rlr_verdict_t *verdict,
                      rlr_subject_t *subject);

/* Whether this stream is the request that its connection was charged for, and
 * the first to say so: *verdict is the one on that. Any thread. */
bool rlr_upgrade_take(rlr_verdict_t *verdict, const request_rec *r,
                      const rlr_site_t *site, rlr_subject_t *subject);

#endif
