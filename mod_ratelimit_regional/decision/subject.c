/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the path and the keys of a request. */
#include "subject.h"

#include <string.h>

#include <arpa/inet.h>

#include <apr_strings.h>

#include "../private.h"
#include "../rules/sha256.h"

#define MAPPED_BYTES 12
/* Of an IPv6 address. */
#define NETWORK_BYTES 8

static const unsigned char mapped_prefix[MAPPED_BYTES] = {
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

/* ---- Keys ---- */

/* Printable ASCII without blanks and commas: httpd joins repeated headers with
 * ", " and folded lines with a blank, and neither is a single value. */
static bool is_credential(const char *text, size_t most)
{
    size_t length = 0;

    while (text[length] > ' ' && text[length] <= '~' && text[length] != ',') {
        length++;
    }
    return text[length] == '\0' && length > 0 && length <= most;
}

static bool is_cached(const rlr_digest_cache_t *cache, const char *text,
                      size_t most)
{
    return cache != NULL && cache->length > 0 && cache->length <= most
        && strcmp(cache->text, text) == 0;
}

static void set_credential(rlr_credential_t *credential, const char *text,
                           size_t most, rlr_digest_cache_t *cache)
{
    memset(credential, 0, sizeof(*credential));
    if (text == NULL) {
        return;
    }
    credential->text = text;
    credential->cache = cache;
    credential->has_digest = is_cached(cache, text, most);
    credential->present = credential->has_digest || is_credential(text, most);
    if (credential->has_digest) {
        credential->digest = cache->digest;
    }
}

static void set_key(rlr_subject_t *subject, const rlr_vhost_t *vhost,
                    rlr_key_t key, const char *text, rlr_digest_cache_t *cache)
{
    rlr_credential_t *credential = &subject->credentials[key];

    set_credential(credential, text, rlr_keys[key].max, cache);
    if (key == RLR_KEY_API && credential->present && vhost->key_pattern != NULL
        && ap_regexec(vhost->key_pattern, text, 0, NULL, 0) != 0) {
        credential->present = false;
    }
}

void rlr_subject_set_credential(rlr_subject_t *subject,
                                const rlr_vhost_t *vhost, rlr_key_t key,
                                const char *text)
{
    set_key(subject, vhost, key, text, NULL);
}

static void remember(rlr_digest_cache_t *cache, const char *text, size_t length,
                     rlr_digest_t digest)
{
    memcpy(cache->text, text, length + 1);
    cache->length = length;
    cache->digest = digest;
}

const rlr_digest_t *rlr_subject_digest(rlr_credential_t *credential)
{
    if (!credential->has_digest) {
        size_t length = strlen(credential->text);

        credential->digest = rlr_sha256_digest(credential->text, length);
        credential->has_digest = true;
        if (credential->cache != NULL) {
            remember(credential->cache, credential->text, length,
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

/* A client has a whole network of IPv6 addresses, but a single IPv4 address. */
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

static void set_address(rlr_subject_t *subject, const rlr_vhost_t *vhost,
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
        set_ipv6(subject, &address->sa.sin6.sin6_addr, vhost->ipv6_prefix);
    }
#endif
}

bool rlr_subject_parse_address(rlr_subject_t *subject, const rlr_vhost_t *vhost,
                               const char *text)
{
    unsigned char bytes[RLR_ADDRESS_BYTES];

    if (inet_pton(AF_INET, text, bytes) == 1) {
        set_ipv4(subject, bytes);
        return true;
    }
    if (inet_pton(AF_INET6, text, bytes) == 1) {
        set_ipv6(subject, bytes, vhost->ipv6_prefix);
        return true;
    }
    return false;
}

static const char *format_address(const rlr_subject_t *subject,
                                  const rlr_vhost_t *vhost, apr_pool_t *pool)
{
    char text[INET6_ADDRSTRLEN];

    if (is_mapped(subject->address)) {
        return apr_pstrdup(pool,
                           inet_ntop(AF_INET, subject->address + MAPPED_BYTES,
                                     text, sizeof(text)));
    }
    inet_ntop(AF_INET6, subject->address, text, sizeof(text));
    return apr_psprintf(pool, "%s/%d", text, vhost->ipv6_prefix);
}

/* ---- The subject ---- */

void rlr_subject_set_target(rlr_subject_t *subject, const rlr_vhost_t *vhost,
                            const char *method, const char *path,
                            apr_pool_t *pool)
{
    rlr_target_t *target = &subject->target;
    char *normal = apr_palloc(pool, strlen(path) + 1);

    target->method = method;
    target->head_as_get = vhost->head_as_get;
    target->length = rlr_match_normalize(normal, path, vhost->slashes);
    target->full = normal;
    target->full_length = target->length;
    target->path = rlr_match_strip(normal, &target->length,
                                   vhost->strip_prefix);
}

rlr_client_connection_t *rlr_subject_connection(conn_rec *c)
{
    rlr_client_connection_t *connection = ap_get_module_config(
        c->conn_config, &ratelimit_regional_module);

    if (connection == NULL) {
        connection = apr_pcalloc(c->pool, sizeof(*connection));
        ap_set_module_config(c->conn_config, &ratelimit_regional_module,
                             connection);
    }
    return connection;
}

/* An HTTP/2 stream is a connection for one request. */
static rlr_digest_cache_t *find_cache(const request_rec *r)
{
    return r->connection->master != NULL
        ? NULL
        : &rlr_subject_connection(r->connection)->cache;
}

void rlr_subject_read(rlr_subject_t *subject, const rlr_vhost_t *vhost,
                      const request_rec *r)
{
    /* Not r->uri: a forward proxy's request has the whole URL there. */
    const char *path = r->parsed_uri.path ? r->parsed_uri.path : "/";

    rlr_subject_set_target(subject, vhost, r->method, path, r->pool);
    for (int key = 0; key < RLR_KEYS; key++) {
        const char *header = rlr_keys[key].header;
        const char *text = header != NULL ? apr_table_get(r->headers_in, header)
                                          : NULL;

        set_key(subject, vhost, (rlr_key_t)key, text,
                text != NULL ? find_cache(r) : NULL);
    }
    set_address(subject, vhost, r->useragent_addr);
}

static size_t add_bytes(unsigned char *identity, size_t length,
                        const void *bytes, size_t count)
{
    memcpy(identity + length, bytes, count);
    return length + count;
}

/* With the prefix: virtual hosts that share counters may have different ones,
 * and a /48 must differ from its first /64. */
static size_t add_address(unsigned char *identity, size_t length,
                          const rlr_subject_t *subject,
                          const rlr_vhost_t *vhost)
{
    unsigned char prefix = is_mapped(subject->address)
        ? 0
        : (unsigned char)vhost->ipv6_prefix;

    length = add_bytes(identity, length, subject->address, RLR_ADDRESS_BYTES);
    return add_bytes(identity, length, &prefix, 1);
}

/* Each part is of fixed length, or has its length before it. */
size_t rlr_subject_identity(unsigned char identity[RLR_IDENTITY_MAX],
                            rlr_subject_t *subject, const rlr_vhost_t *vhost,
                            rlr_key_t key)
{
    size_t length = add_bytes(identity, 0, vhost->scope, vhost->scope_length);

    if (rlr_keys[key].header != NULL) {
        length = add_bytes(identity, length,
                           rlr_subject_digest(&subject->credentials[key]),
                           RLR_DIGEST_BYTES);
    }
    return rlr_keys[key].by_address
        ? add_address(identity, length, subject, vhost)
        : length;
}

size_t rlr_subject_holder(const void **holder, const rlr_subject_t *subject)
{
    *holder = subject->address;
    return is_mapped(subject->address) ? RLR_ADDRESS_BYTES : NETWORK_BYTES;
}

const char *rlr_subject_describe(rlr_subject_t *subject,
                                 const rlr_vhost_t *vhost, rlr_key_t key,
                                 apr_pool_t *pool)
{
    const rlr_key_row_t *row = &rlr_keys[key];
    char digest[RLR_DIGEST_TEXT_SIZE];
    const char *address = row->by_address
        ? apr_pstrcat(pool, "ip ", format_address(subject, vhost, pool), NULL)
        : "";

    if (row->header == NULL) {
        return address;
    }
    rlr_digest_format(digest, rlr_subject_digest(&subject->credentials[key]));
    return apr_pstrcat(pool, row->field, " ", digest,
                       row->by_address ? " at " : "", address, NULL);
}
