/* SPDX-License-Identifier: Apache-2.0 */
/* A duplicate of a client's socket, with which any thread can make the MPM call
 * a request that waits for that client. A duplicate, so that no other
 * connection can have its number. */
#ifndef AGENT_WAIT_CLIENT_SOCKET_H
#define AGENT_WAIT_CLIENT_SOCKET_H

#include <apr_pools.h>

typedef struct agent_client_socket_t agent_client_socket_t;

/* Duplicates fd, until pool ends. Errors: those of fcntl(), EMFILE when
 * descriptors have run out; *out is NULL then. */
apr_status_t agent_client_socket_create(agent_client_socket_t **out, int fd,
                                        apr_pool_t *pool);

/* end: SHUT_RD or SHUT_RDWR. The MPM, which polls the connection, sees the end
 * of the input. */
void agent_client_socket_shut_down(const agent_client_socket_t *client,
                                   int end);

#endif
