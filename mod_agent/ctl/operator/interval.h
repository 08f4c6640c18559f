/* SPDX-License-Identifier: Apache-2.0 */
/* Durations of options as intervals of PostgreSQL. */
#ifndef AGENT_CTL_INTERVAL_H
#define AGENT_CTL_INTERVAL_H

#include <apr_pools.h>

#include "../base/status.h"

/* Sets *out to the interval that text names, in pool; NULL stays NULL. option:
 * its name; least: the shortest one, "1s" for example. Returns CTL_DONE;
 * CTL_USAGE, after printing why. */
int ctl_interval_read(const char **out, const char *option, const char *text,
                      const char *least, apr_pool_t *pool);

#endif
