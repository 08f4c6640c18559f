/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the host of a URL with libcurl's parser. */
#include "host.h"

#include <apr_strings.h>
#include <curl/curl.h>

const char *runner_host_read(const char *url, apr_pool_t *pool)
{
    CURLU *parsed = curl_url();
    char *host = NULL;
    char *port = NULL;
    const char *result = url;

    if (curl_url_set(parsed, CURLUPART_URL, url, 0) == CURLUE_OK
        && curl_url_get(parsed, CURLUPART_HOST, &host, 0) == CURLUE_OK) {
        result = apr_pstrdup(pool, host);
        if (curl_url_get(parsed, CURLUPART_PORT, &port, 0) == CURLUE_OK) {
            result = apr_pstrcat(pool, host, ":", port, NULL);
        }
    }
    curl_free(host);
    curl_free(port);
    curl_url_cleanup(parsed);
    return result;
}
