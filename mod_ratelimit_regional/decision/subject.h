/* SPDX-License-Identifier: Apache-2.0 */
/* The subject of a decision: the method, the path, and the keys that rules
 * count by. Read from a request, or from a query to the status page. */
#ifndef RLR_SUBJECT_H
#define RLR_SUBJECT_H

#include <stdbool.h>

#include <httpd.h>

#include "../config/vhost.h"
#include "../rules/digest.h"
#include "../rules/key.h"
#include "../rules/match.h"

#define RLR_ADDRESS_BYTES 16

/* The scope's length, the scope, a digest, an address, its prefix. */
#define RLR_IDENTITY_MAX                                                       \
    (1 + RLR_SCOPE_MAX + RLR_DIGEST_BYTES + RLR_ADDRESS_BYTES + 1)

/* The digest of the last credential of a connection. Most connections send the
 * same one with each request, and its digest takes longer than the decision. */
typedef struct rlr_digest_cache_t {
    char text[RLR_KEY_VALUE_MAX + 1];
    /* 0: none yet. */
    size_t length;
    rlr_digest_t digest;
} rlr_digest_cache_t;

/* Private to upgrade.c. */
typedef struct rlr_upgrade_t rlr_upgrade_t;

/* The module's data of a connection. */
typedef struct rlr_client_connection_t {
    rlr_digest_cache_t cache;
    rlr_upgrade_t *upgrade; /* or NULL */
} rlr_client_connection_t;

/* A credential: the value of a key's header, or its digest. */
typedef struct rlr_credential_t {
    bool present;
    rlr_digest_cache_t *cache; /* or NULL */
    /* Borrowed from the request until the digest is computed; NULL if only the
     * digest is known. */
    const char *text;
    bool has_digest;
    rlr_digest_t digest;
} rlr_credential_t;

typedef struct rlr_subject_t {
    rlr_target_t target;
    /* Of the keys with a header. */
    rlr_credential_t credentials[RLR_KEYS];
    /* As IPv6; IPv4 is mapped. The bits after the virtual host's prefix are
     * 0. */
    unsigned char address[RLR_ADDRESS_BYTES];
} rlr_subject_t;

/* Returns the module's data of a connection that is not an HTTP/2 stream;
 * creates it if there is none. */
rlr_client_connection_t *rlr_subject_connection(conn_rec *c);

/* Reads the subject from a request; the path is in the request's pool. */
void rlr_subject_read(rlr_subject_t *subject, const rlr_vhost_t *vhost,
                      const request_rec *r);

/* Sets method and path; `path` as a client sends it, without the query. */
void rlr_subject_set_target(rlr_subject_t *subject, const rlr_vhost_t *vhost,
                            const char *method, const char *path,
                            apr_pool_t *pool);

/* Sets the credential of a key with a header; text may be NULL and must live as
 * long as the subject. An invalid value counts as absent. */
void rlr_subject_set_credential(rlr_subject_t *subject,
                                const rlr_vhost_t *vhost, rlr_key_t key,
                                const char *text);

/* Sets the address from text; false if it is neither IPv4 nor IPv6. */
bool rlr_subject_parse_address(rlr_subject_t *subject, const rlr_vhost_t *vhost,
                               const char *text);

/* Whether the subject carries the key. */
static inline bool rlr_subject_has(const rlr_subject_t *subject, rlr_key_t key)
{
    return rlr_keys[key].header == NULL || subject->credentials[key].present;
}

/* Returns the digest of a credential that is present. */
const rlr_digest_t *rlr_subject_digest(rlr_credential_t *credential);

/* Writes the bytes that identify the subject to rules with the key; returns
 * their number. */
size_t rlr_subject_identity(unsigned char identity[RLR_IDENTITY_MAX],
                            rlr_subject_t *subject, const rlr_vhost_t *vhost,
                            rlr_key_t key);

/*
 * Sets *holder to the bytes of the address to which the slots of the subject's
 * keys are counted (counter/share.h), borrowed from the subject, and returns
 * their number. For IPv6 these are the first 64 bits, independent of the
 * virtual host's prefix, since a client has all addresses of such a network.
 */
size_t rlr_subject_holder(const void **holder, const rlr_subject_t *subject);

/* Returns the identity for logs and the status page, without secrets, in pool:
 * "api-key sha256:..." */
const char *rlr_subject_describe(rlr_subject_t *subject,
                                 const rlr_vhost_t *vhost, rlr_key_t key,
                                 apr_pool_t *pool);

#endif
