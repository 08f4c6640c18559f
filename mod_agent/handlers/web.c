/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET / of a platform host: a page on which a person chooses a region. It is
 * the same for all clients: their address does not choose a region.
 */
#include "handlers.h"

#include <string.h>

#include <apr_strings.h>

#include "../config/region.h"
#include "../http/response.h"

#define PAGE_HEAD                                                              \
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"  \
    "<meta name=\"viewport\" content=\"width=device-width\">\n"                \
    "<title>Regions</title>\n</head>\n<body>\n<h1>Regions</h1>\n"              \
    "<p>An account, its keys and its data are in one region. Choose that of "  \
    "your account.</p>\n<ul>\n"
#define PAGE_END "</ul>\n</body>\n</html>\n"

/* Names and URLs of regions need no escapes. is_own: of the server. */
static const char *print_region(const agent_region_t *region, bool is_own,
                                apr_pool_t *pool)
{
    const char *beacon = region->beacon != NULL
        ? apr_pstrcat(pool, ", beacon <code>", region->beacon, "</code>", NULL)
        : "";

    return apr_pstrcat(pool, "<li><a href=\"", region->web, "\">", region->name,
                       "</a>", is_own ? " (this site)" : "", ": API <code>",
                       region->api, "</code>", beacon, "</li>\n", NULL);
}

static const char *print_page(const agent_server_config_t *config,
                              apr_pool_t *pool)
{
    const char *own = agent_region_own(config);
    int count = config->regions->nelts;
    apr_array_header_t *parts = apr_array_make(pool, count + 2,
                                               sizeof(const char *));

    APR_ARRAY_PUSH(parts, const char *) = PAGE_HEAD;
    /* Bounded: the regions of the configuration. */
    for (int i = 0; i < count; i++) {
        const agent_region_t *region = &APR_ARRAY_IDX(config->regions, i,
                                                      const agent_region_t);

        APR_ARRAY_PUSH(parts, const char *) = print_region(
            region, strcmp(region->name, own) == 0, pool);
    }
    if (count == 0) {
        APR_ARRAY_PUSH(parts, const char *) = apr_pstrcat(pool, "<li>", own,
                                                          "</li>\n", NULL);
    }
    APR_ARRAY_PUSH(parts, const char *) = PAGE_END;
    return apr_array_pstrcat(pool, parts, '\0');
}

int agent_handle_regions(agent_call_t *call)
{
    return agent_response_page(call,
                               print_page(call->child->config, call->pool));
}
