/* SPDX-License-Identifier: Apache-2.0 */
/* The host of a URL. */
#ifndef AGENT_RUNNER_HOST_H
#define AGENT_RUNNER_HOST_H

#include <apr_pools.h>

/* "host:port" of a URL, or "host" when it names no port; in pool. Returns url
 * when it is malformed. */
const char *runner_host_read(const char *url, apr_pool_t *pool);

#endif
