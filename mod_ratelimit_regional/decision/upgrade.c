/* SPDX-License-Identifier: Apache-2.0 */
/* Remembers what an upgraded request was charged; see upgrade.h. */
#include "upgrade.h"

#include <stdatomic.h>
#include <string.h>

#include <apr_strings.h>

#include "../private.h"

/* In the pool of the connection that is upgraded. Its streams, on threads of
 * their own, begin after it was written. */
struct rlr_upgrade_t {
    rlr_digest_t request;
    rlr_verdict_t verdict;
    /* Until a stream has taken it. */
    _Atomic bool waits;
};

/* Requests of the same digest are charged to the same counter. The path, the
 * one part that may have a line feed in it, is the last. */
static rlr_digest_t make_digest(const rlr_site_t *site, rlr_subject_t *subject,
                                apr_pool_t *pool)
{
    rlr_key_t who = subject->user.present ? RLR_KEY_USER : RLR_KEY_IP;
    const char *text = apr_psprintf(
        pool, "%pp\n%s\n%s\n%s\n%s", (const void *)site, subject->target.method,
        rlr_subject_describe(subject, site, who, pool),
        subject->api_key.present
            ? rlr_subject_describe(subject, site, RLR_KEY_API, pool)
            : "",
        subject->target.full);

    return rlr_digest_make(text, strlen(text));
}

void rlr_upgrade_note(request_rec *r, const rlr_verdict_t *verdict,
                      rlr_subject_t *subject)
{
    rlr_connection_t *connection;
    rlr_upgrade_t *upgrade;

    if (r->connection->master != NULL
        || apr_table_get(r->headers_in, "Upgrade") == NULL) {
        return;
    }
    connection = rlr_subject_connection(r->connection);
    upgrade = connection->upgrade;
    if (upgrade == NULL) {
        upgrade = apr_palloc(r->connection->pool, sizeof(*upgrade));
        connection->upgrade = upgrade;
    }
    upgrade->request = make_digest(verdict->site, subject, r->pool);
    upgrade->verdict = *verdict;
    upgrade->verdict.answer.first_refusal = false;
    upgrade->verdict.answer.overflow = false;
    /* A refused one is not upgraded. */
    atomic_init(&upgrade->waits,
                verdict->outcome == RLR_ADMITTED
                    || verdict->outcome == RLR_WOULD_REFUSE);
}

bool rlr_upgrade_take(rlr_verdict_t *verdict, const request_rec *r,
                      const rlr_site_t *site, rlr_subject_t *subject)
{
    const conn_rec *master = r->connection->master;
    const rlr_connection_t *connection = master == NULL
        ? NULL
        : ap_get_module_config(master->conn_config, &ratelimit_regional_module);
    rlr_upgrade_t *upgrade = connection == NULL ? NULL : connection->upgrade;
    rlr_digest_t request;

    if (upgrade == NULL || !atomic_load(&upgrade->waits)) {
        return false;
    }
    request = make_digest(site, subject, r->pool);
    if (!rlr_digest_equal(&request, &upgrade->request)
        || !atomic_exchange(&upgrade->waits, false)) {
        return false;
    }
    *verdict = upgrade->verdict;
    return true;
}
