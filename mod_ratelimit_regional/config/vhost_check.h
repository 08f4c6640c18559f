/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that need the whole configuration: directives may name rules and
 * regions that are defined after them. Each check returns NULL, or the error,
 * in pool. */
#ifndef RLR_VHOST_CHECK_H
#define RLR_VHOST_CHECK_H

#include <apr_pools.h>

#include "config.h"

/* Returns the regions of all rules, for messages, in pool. */
const char *rlr_vhost_check_regions(const rlr_global_t *global,
                                    apr_pool_t *pool);

/* RateLimitRegion of a server: a region that some rule has a limit for. */
const char *rlr_vhost_check_region(const rlr_config_t *config,
                                   apr_pool_t *pool);

/* RateLimitEngine with the name of a rule. */
const char *rlr_vhost_check_engines(const rlr_config_t *config,
                                    apr_pool_t *pool);

/* RateLimitOverride with the name of a rule. */
const char *rlr_vhost_check_overrides(const rlr_global_t *global,
                                      apr_pool_t *pool);

#endif
