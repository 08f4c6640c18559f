/* SPDX-License-Identifier: Apache-2.0 */
/* Stores and finds the decision on an upgraded request. */
#include "upgrade.h"

#include <stdatomic.h>
#include <string.h>

#include <apr_strings.h>

#include "../private.h"
#include "../rules/sha256.h"

/* In the pool of the upgraded connection. Its streams, in other threads, start
 * after it was written. */
struct rlr_upgrade_t {
    rlr_digest_t request;
    rlr_decision_t decision;
    /* No stream has taken it yet. */
    _Atomic bool is_unused;
};

/* The identities of all keys that the subject carries. */
static const char *list_identities(const rlr_vhost_t *vhost,
                                   rlr_subject_t *subject, apr_pool_t *pool)
{
    const char *list = "";

    /* Bounded: the rows of keys.def. */
    for (int key = 0; key < RLR_KEYS; key++) {
        if (rlr_subject_has(subject, (rlr_key_t)key)) {
            list = apr_pstrcat(
                pool, list,
                rlr_subject_describe(subject, vhost, (rlr_key_t)key, pool),
                "\n", NULL);
        }
    }
    return list;
}

/* Requests with the same digest are charged to the same counter. The path, the
 * one part that may contain a line feed, is the last. */
static rlr_digest_t make_digest(const rlr_vhost_t *vhost,
                                rlr_subject_t *subject, apr_pool_t *pool)
{
    const char *text = apr_psprintf(
        pool, "%pp\n%s\n%s%s", (const void *)vhost, subject->target.method,
        list_identities(vhost, subject, pool), subject->target.full);

    return rlr_sha256_digest(text, strlen(text));
}

void rlr_upgrade_remember(request_rec *r, const rlr_decision_t *decision,
                          rlr_subject_t *subject)
{
    rlr_client_connection_t *connection;
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
    upgrade->request = make_digest(decision->vhost, subject, r->pool);
    upgrade->decision = *decision;
    upgrade->decision.counter.first_refusal = false;
    upgrade->decision.counter.overflow = false;
    /* A refused request is not upgraded. */
    atomic_init(&upgrade->is_unused,
                decision->outcome == RLR_ADMITTED
                    || decision->outcome == RLR_WOULD_REFUSE);
}

bool rlr_upgrade_take(rlr_decision_t *decision, const request_rec *r,
                      const rlr_vhost_t *vhost, rlr_subject_t *subject)
{
    const conn_rec *master = r->connection->master;
    const rlr_client_connection_t *connection = master == NULL
        ? NULL
        : ap_get_module_config(master->conn_config, &ratelimit_regional_module);
    rlr_upgrade_t *upgrade = connection == NULL ? NULL : connection->upgrade;
    rlr_digest_t request;

    if (upgrade == NULL || !atomic_load(&upgrade->is_unused)) {
        return false;
    }
    request = make_digest(vhost, subject, r->pool);
    if (!rlr_digest_equal(&request, &upgrade->request)
        || !atomic_exchange(&upgrade->is_unused, false)) {
        return false;
    }
    *decision = upgrade->decision;
    return true;
}
