/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who asks for what: the method, the path, and the three things that rules
 * count by. Filled from a request, or from an operator's question.
 */
#ifndef RLR_SUBJECT_H
#define RLR_SUBJECT_H

#include <stdbool.h>

#include <httpd.h>

#include "../rules/digest.h"
#include "../rules/match.h"
#include "../rules/rule.h"
#include "../config/vhost.h"

#define RLR_API_KEY_HEADER "x-api-key"
#define RLR_USER_HEADER    "x-user-id"

#define RLR_API_KEY_MAX 256
#define RLR_USER_MAX    128

#define RLR_ADDRESS_BYTES 16

/* The scope's length, the scope, a digest, an address, its prefix. */
#define RLR_IDENTITY_MAX                                                       \
    (1 + RLR_SCOPE_MAX + RLR_DIGEST_BYTES + RLR_ADDRESS_BYTES + 1)

/* The last credential that a connection has sent: most send the same one again
 * and again, and its digest takes longer than the decision. */
typedef struct rlr_recall_t {
    char text[RLR_API_KEY_MAX + 1];
    /* 0: none yet. */
    size_t length;
    rlr_digest_t digest;
} rlr_recall_t;

/* See upgrade.h. */
typedef struct rlr_upgrade_t rlr_upgrade_t;

/* What is kept on a connection. */
typedef struct rlr_connection_t {
    rlr_recall_t recall;
    rlr_upgrade_t *upgrade; /* or NULL */
} rlr_connection_t;

/* An API key or a user id. */
typedef struct rlr_credential_t {
    bool present;
    rlr_recall_t *recall; /* or NULL */
    /* Borrowed from the request until the digest is made; NULL when only the
     * digest is known. */
    const char *text;
    bool has_digest;
    rlr_digest_t digest;
} rlr_credential_t;

typedef struct rlr_subject_t {
    rlr_target_t target;
    rlr_credential_t api_key;
    rlr_credential_t user;
    /* As IPv6; IPv4 is mapped. Without the bits behind the site's prefix. */
    unsigned char address[RLR_ADDRESS_BYTES];
} rlr_subject_t;

/* What is kept on a connection that is no stream of another one; made where it
 * is not there yet. */
rlr_connection_t *rlr_subject_connection(conn_rec *c);

/* Fills the subject from a request, whose pool the path is in. */
void rlr_subject_read(rlr_subject_t *subject, const rlr_site_t *site,
                      const request_rec *r);

/* Fills method and path; `path` as a client sends it, without the query. */
void rlr_subject_set_target(rlr_subject_t *subject, const rlr_site_t *site,
                            const char *method, const char *path,
                            apr_pool_t *pool);

/* Takes an API key or user id in clear; one that is none counts as absent.
 * text may be NULL and must live as long as the subject. */
void rlr_subject_set_api_key(rlr_subject_t *subject, const rlr_site_t *site,
                             const char *text);
void rlr_subject_set_user(rlr_subject_t *subject, const char *text);

/* Takes an IPv4 or IPv6 address in text; false if it is none. */
bool rlr_subject_parse_address(rlr_subject_t *subject, const rlr_site_t *site,
                               const char *text);

/* Whether the subject carries what the key counts by. */
static inline bool rlr_subject_has(const rlr_subject_t *subject, rlr_key_t key)
{
    return key == RLR_KEY_IP
        || (key == RLR_KEY_API ? subject->api_key.present
                               : subject->user.present);
}

/* The digest of a credential that is present. */
const rlr_digest_t *rlr_credential_digest(rlr_credential_t *credential);

/* The bytes that a rule with this key counts the subject by; their number. */
size_t rlr_subject_identity(unsigned char identity[RLR_IDENTITY_MAX],
                            rlr_subject_t *subject, const rlr_site_t *site,
                            rlr_key_t key);

/*
 * The bytes of who brings the subject's keys, for the share of the table that
 * one address may hold; their number. Borrowed from the subject. Of IPv6 at
 * most the first 64 bits, whatever identities are told apart by: a client has
 * all addresses of such a network.
 */
size_t rlr_subject_holder(const void **holder, const rlr_subject_t *subject);

/* The identity for people, without secrets, in pool: "api-key sha256:..." */
const char *rlr_subject_describe(rlr_subject_t *subject, const rlr_site_t *site,
                                 rlr_key_t key, apr_pool_t *pool);

#endif
