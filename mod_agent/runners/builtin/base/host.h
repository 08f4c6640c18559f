/* SPDX-License-Identifier: Apache-2.0 */
/* The host of a URL. */
#ifndef AGENT_RUNNER_HOST_H
#define AGENT_RUNNER_HOST_H

#include <apr_pools.h>

/* "host:port" or "host" of a URL, in pool; url itself when it is malformed. */
const char *runner_host_read(const char *url, apr_pool_t *pool);

#endif
