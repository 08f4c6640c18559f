/* SPDX-License-Identifier: Apache-2.0 */
/* Warnings about configurations that are legal and probably mistakes. */
#ifndef RLR_VHOST_WARN_H
#define RLR_VHOST_WARN_H

#include <httpd.h>

/* Logs rules that can never match, rules of which a host without the store
 * never admits its share, and servers without a region. */
void rlr_vhost_warn(server_rec *main_server, apr_pool_t *pool);

#endif
