/* SPDX-License-Identifier: Apache-2.0 */
/* One SSL_CTX for all connections. hiredis verifies no names, so each
 * connection gets an SSL that does. */
#include "tls.h"

#ifdef RLR_STORE_TLS

#include <stdbool.h>

#include <apr_strings.h>
#include <hiredis/hiredis_ssl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

struct rlr_tls_t {
    SSL_CTX *context;
    const char *name;
};

static apr_status_t free_context(void *context)
{
    SSL_CTX_free(context);
    return APR_SUCCESS;
}

/* Returns NULL, or "expected ..., got ...". */
static const char *read_files(SSL_CTX *context, const rlr_tls_files_t *files,
                              apr_pool_t *pool)
{
    bool has_certificate = files->certificate != NULL;

    if (has_certificate != (files->key != NULL)) {
        return "expected certificate= and key= together, got one of them";
    }
    if ((files->ca != NULL
         && SSL_CTX_load_verify_locations(context, files->ca, NULL) != 1)
        || (files->ca == NULL
            && SSL_CTX_set_default_verify_paths(context) != 1)) {
        return apr_psprintf(pool,
                            "expected certificates of authorities in PEM, got "
                            "'%s'",
                            files->ca != NULL ? files->ca : "the system's");
    }
    if (has_certificate
        && SSL_CTX_use_certificate_chain_file(context, files->certificate)
            != 1) {
        return apr_psprintf(pool, "expected a certificate in PEM, got '%s'",
                            files->certificate);
    }
    if (has_certificate
        && (SSL_CTX_use_PrivateKey_file(context, files->key, SSL_FILETYPE_PEM)
                != 1
            || SSL_CTX_check_private_key(context) != 1)) {
        return apr_psprintf(
            pool, "expected the certificate's private key in PEM, got '%s'",
            files->key);
    }
    return NULL;
}

/* A key with a passphrase is an error: nobody is there to be asked. */
static int give_no_passphrase(char *text, int size, int writes, void *data)
{
    return 0;
}

apr_status_t rlr_tls_make(rlr_tls_t **tls, const rlr_tls_files_t *files,
                          const char **problem, apr_pool_t *pool)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());

    *problem = "no memory for TLS";
    if (context == NULL) {
        return APR_ENOMEM;
    }
    apr_pool_cleanup_register(pool, context, free_context,
                              apr_pool_cleanup_null);
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_default_passwd_cb(context, give_no_passphrase);
    *problem = read_files(context, files, pool);
    ERR_clear_error();
    if (*problem != NULL) {
        return APR_EINVAL;
    }
    *tls = apr_palloc(pool, sizeof(**tls));
    (*tls)->context = context;
    (*tls)->name = files->name;
    return APR_SUCCESS;
}

/* The certificate must name the host, or its address. */
static bool set_name(SSL *ssl, const char *name)
{
    if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name) == 1) {
        return true;
    }
    return SSL_set1_host(ssl, name) == 1
        && SSL_set_tlsext_host_name(ssl, name) == 1;
}

const char *rlr_tls_start(const rlr_tls_t *tls, redisContext *context,
                          const char *host)
{
    SSL *ssl = SSL_new(tls->context);

    if (ssl == NULL || !set_name(ssl, tls->name != NULL ? tls->name : host)) {
        SSL_free(ssl);
        return "no memory for TLS";
    }
    if (redisInitiateSSL(context, ssl) != REDIS_OK) {
        SSL_free(ssl);
        return context->errstr;
    }
    return NULL;
}

#else

apr_status_t rlr_tls_make(rlr_tls_t **tls, const rlr_tls_files_t *files,
                          const char **problem, apr_pool_t *pool)
{
    *problem = "this build has no TLS to the store, since hiredis has none";
    return APR_ENOTIMPL;
}

const char *rlr_tls_start(const rlr_tls_t *tls, struct redisContext *context,
                          const char *host)
{
    return "this build has no TLS";
}

#endif
