/* SPDX-License-Identifier: Apache-2.0 */
/* Reads what rules count by; see subject.h. */
#include "subject.h"

#include <string.h>

#include <arpa/inet.h>

#include <apr_strings.h>

#include "../private.h"

#define MAPPED_BYTES 12
/* Of an IPv6 address. */
#define NETWORK_BYTES 8

static const unsigned char mapped_prefix[MAPPED_BYTES] = {
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

/* ---- Keys ---- */

/*
 * Visible ASCII without a comma: httpd joins repeated headers with ", " and
 * folded ones with a blank, and neither is one key.
 */
static bool is_credential(const char *text, size_t most)
{
    size_t length = 0;

    while (text[length] > ' ' && text[length] <= '~' && text[length] != ',') {
        length++;
    }
    return text[length] == '\0' && length > 0 && length <= most;
}

static bool is_recalled(const rlr_recall_t *recall, const char *text,
                        size_t most)
{
    return recall != NULL && recall->length > 0 && recall->length <= most
        && strcmp(recall->text, text) == 0;
}

static void set_credential(rlr_credential_t *credential, const char *text,
                           size_t most, rlr_recall_t *recall)
{
    memset(credential, 0, sizeof(*credential));
    if (text == NULL) {
        return;
    }
    credential->text = text;
    credential->recall = recall;
    credential->has_digest = is_recalled(recall, text, most);
    credential->present = credential->has_digest || is_credential(text, most);
    if (credential->has_digest) {
        credential->digest = recall->digest;
    }
}

static void set_api_key(rlr_subject_t *subject, const rlr_site_t *site,
                        const char *text, rlr_recall_t *recall)
{
    set_credential(&subject->api_key, text, RLR_API_KEY_MAX, recall);
    if (subject->api_key.present && site->key_pattern != NULL
        && ap_regexec(site->key_pattern, text, 0, NULL, 0) != 0) {
        subject->api_key.present = false;
    }
}

void rlr_subject_set_api_key(rlr_subject_t *subject, const rlr_site_t *site,
                             const char *text)
{
    set_api_key(subject, site, text, NULL);
}

void rlr_subject_set_user(rlr_subject_t *subject, const char *text)
{
    set_credential(&subject->user, text, RLR_USER_MAX, NULL);
}

static void remember(rlr_recall_t *recall, const char *text, size_t length,
                     rlr_digest_t digest)
{
    memcpy(recall->text, text, length + 1);
    recall->length = length;
    recall->digest = digest;
}

const rlr_digest_t *rlr_credential_digest(rlr_credential_t *credential)
{
    if (!credential->has_digest) {
        size_t length = strlen(credential->text);

        credential->digest = rlr_digest_make(credential->text, length);
        credential->has_digest = true;
        if (credential->recall != NULL) {
            remember(credential->recall, credential->text, length,
                     credential->digest);
        }
    }
    return &credential->digest;
}

/* ---- The address ---- */

static void set_ipv4(rlr_subject_t *subject, const void *bytes)
{
    memcpy(subject->address, mapped_prefix, MAPPED_BYTES);
    memcpy(subject->address + MAPPED_BYTES, bytes,
           RLR_ADDRESS_BYTES - MAPPED_BYTES);
}

static bool is_mapped(const unsigned char *address)
{
    return memcmp(address, mapped_prefix, MAPPED_BYTES) == 0;
}

/* A client has a whole network of IPv6 addresses, but one of IPv4. */
static void set_ipv6(rlr_subject_t *subject, const void *bytes, int prefix)
{
    memcpy(subject->address, bytes, RLR_ADDRESS_BYTES);
    if (is_mapped(subject->address)) {
        return;
    }
    for (int i = 0; i < RLR_ADDRESS_BYTES; i++) {
        int bits = prefix - 8 * i;

        if (bits < 8) {
            subject->address[i] &= (unsigned char)(bits <= 0 ? 0
                                                             : 0xff00 >> bits);
        }
    }
}

static void set_address(rlr_subject_t *subject, const rlr_site_t *site,
                        const apr_sockaddr_t *address)
{
    memset(subject->address, 0, RLR_ADDRESS_BYTES);
    if (address == NULL) {
        return;
    }
    if (address->family == APR_INET) {
        set_ipv4(subject, &address->sa.sin.sin_addr);
    }
#if APR_HAVE_IPV6
    else if (address->family == APR_INET6) {
        set_ipv6(subject, &address->sa.sin6.sin6_addr, site->ipv6_prefix);
    }
#endif
}

bool rlr_subject_parse_address(rlr_subject_t *subject, const rlr_site_t *site,
                               const char *text)
{
    unsigned char bytes[RLR_ADDRESS_BYTES];

    if (inet_pton(AF_INET, text, bytes) == 1) {
        set_ipv4(subject, bytes);
        return true;
    }
    if (inet_pton(AF_INET6, text, bytes) == 1) {
        set_ipv6(subject, bytes, site->ipv6_prefix);
        return true;
    }
    return false;
}

static const char *format_address(const rlr_subject_t *subject,
                                  const rlr_site_t *site, apr_pool_t *pool)
{
    char text[INET6_ADDRSTRLEN];

    if (is_mapped(subject->address)) {
        return apr_pstrdup(pool,
                           inet_ntop(AF_INET, subject->address + MAPPED_BYTES,
                                     text, sizeof(text)));
    }
    inet_ntop(AF_INET6, subject->address, text, sizeof(text));
    return apr_psprintf(pool, "%s/%d", text, site->ipv6_prefix);
}

/* ---- The whole ---- */

void rlr_subject_set_target(rlr_subject_t *subject, const rlr_site_t *site,
                            const char *method, const char *path,
                            apr_pool_t *pool)
{
    rlr_target_t *target = &subject->target;
    char *normal = apr_palloc(pool, strlen(path) + 1);

    target->method = method;
    target->head_as_get = site->head_as_get;
    target->length = rlr_match_normalize(normal, path, site->slashes);
    target->full = normal;
    target->full_length = target->length;
    target->path = rlr_match_strip(normal, &target->length, site->strip_prefix);
}

rlr_connection_t *rlr_subject_connection(conn_rec *c)
{
    rlr_connection_t *connection = ap_get_module_config(
        c->conn_config, &ratelimit_regional_module);

    if (connection == NULL) {
        connection = apr_pcalloc(c->pool, sizeof(*connection));
        ap_set_module_config(c->conn_config, &ratelimit_regional_module,
                             connection);
    }
    return connection;
}

/* A stream of HTTP/2 is a connection of its own for one request. */
static rlr_recall_t *find_recall(const request_rec *r)
{
    return r->connection->master != NULL
        ? NULL
        : &rlr_subject_connection(r->connection)->recall;
}

void rlr_subject_read(rlr_subject_t *subject, const rlr_site_t *site,
                      const request_rec *r)
{
    /* Not r->uri: a forward proxy's request has the whole URL there. */
    const char *path = r->parsed_uri.path ? r->parsed_uri.path : "/";
    const char *api_key = apr_table_get(r->headers_in, RLR_API_KEY_HEADER);
    const char *user = apr_table_get(r->headers_in, RLR_USER_HEADER);
    rlr_recall_t *recall = api_key != NULL || user != NULL ? find_recall(r)
                                                           : NULL;

    rlr_subject_set_target(subject, site, r->method, path, r->pool);
    set_api_key(subject, site, api_key, recall);
    set_credential(&subject->user, user, RLR_USER_MAX, recall);
    set_address(subject, site, r->useragent_addr);
}

static size_t add_bytes(unsigned char *identity, size_t length,
                        const void *bytes, size_t count)
{
    memcpy(identity + length, bytes, count);
    return length + count;
}

/* With the prefix: hosts that share counters may have different ones, and a /48
 * is not the first /64 in it. */
static size_t add_address(unsigned char *identity, size_t length,
                          const rlr_subject_t *subject, const rlr_site_t *site)
{
    unsigned char prefix = is_mapped(subject->address)
        ? 0
        : (unsigned char)site->ipv6_prefix;

    length = add_bytes(identity, length, subject->address, RLR_ADDRESS_BYTES);
    return add_bytes(identity, length, &prefix, 1);
}

/* Every part has its length in front of it, or always the same one. */
size_t rlr_subject_identity(unsigned char identity[RLR_IDENTITY_MAX],
                            rlr_subject_t *subject, const rlr_site_t *site,
                            rlr_key_t key)
{
    size_t length = add_bytes(identity, 0, site->scope, site->scope_length);

    if (key == RLR_KEY_API) {
        length = add_bytes(identity, length,
                           rlr_credential_digest(&subject->api_key),
                           RLR_DIGEST_BYTES);
    }
    if (key == RLR_KEY_USER) {
        length = add_bytes(identity, length,
                           rlr_credential_digest(&subject->user),
                           RLR_DIGEST_BYTES);
    }
    return key == RLR_KEY_API ? length
                              : add_address(identity, length, subject, site);
}

size_t rlr_subject_holder(const void **holder, const rlr_subject_t *subject)
{
    *holder = subject->address;
    return is_mapped(subject->address) ? RLR_ADDRESS_BYTES : NETWORK_BYTES;
}

const char *rlr_subject_describe(rlr_subject_t *subject, const rlr_site_t *site,
                                 rlr_key_t key, apr_pool_t *pool)
{
    char digest[RLR_DIGEST_TEXT_SIZE];

    if (key == RLR_KEY_IP) {
        return apr_psprintf(pool, "ip %s", format_address(subject, site, pool));
    }
    if (key == RLR_KEY_API) {
        rlr_digest_format(digest, rlr_credential_digest(&subject->api_key));
        return apr_psprintf(pool, "api-key %s", digest);
    }
    rlr_digest_format(digest, rlr_credential_digest(&subject->user));
    return apr_psprintf(pool, "user %s at ip %s", digest,
                        format_address(subject, site, pool));
}
