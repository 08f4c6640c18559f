/* SPDX-License-Identifier: Apache-2.0 */
/* A duplicate of a client's socket. Any thread can shut it down, which makes
 * the MPM call the request that waits for this client. A duplicate keeps its
 * descriptor number from being reused for another connection. */
#ifndef AGENT_WAIT_CLIENT_SOCKET_H
#define AGENT_WAIT_CLIENT_SOCKET_H

#include <apr_pools.h>

typedef struct agent_client_socket_t agent_client_socket_t;

/* Duplicates fd; closed with pool. Errors: those of fcntl(), EMFILE when
 * descriptors run out; *out is NULL then. */
apr_status_t agent_client_socket_create(agent_client_socket_t **out, int fd,
                                        apr_pool_t *pool);

/* Returns the duplicate. */
int agent_client_socket_descriptor(const agent_client_socket_t *client);

/* how: SHUT_RD or SHUT_RDWR. The MPM, which polls the connection, sees the end
 * of input. */
void agent_client_socket_shut_down(const agent_client_socket_t *client,
                                   int how);

#endif
