/* SPDX-License-Identifier: Apache-2.0 */
/* `httpd -t -D DUMP_RATELIMIT`: the loaded table on standard output. */
#ifndef RLR_DUMP_H
#define RLR_DUMP_H

#include <httpd.h>

/* The test_config hook. */
void rlr_dump(apr_pool_t *pool, server_rec *main_server);

#endif
