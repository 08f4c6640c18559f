/* SPDX-License-Identifier: Apache-2.0 */
/* Duplicates of clients' sockets. */
#include "client_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

struct agent_client_socket_t {
    int fd;
};

static apr_status_t close_socket(void *client)
{
    close(((agent_client_socket_t *)client)->fd);
    return APR_SUCCESS;
}

apr_status_t agent_client_socket_create(agent_client_socket_t **out, int fd,
                                        apr_pool_t *pool)
{
    int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);

    *out = NULL;
    if (own < 0) {
        return errno;
    }
    *out = apr_palloc(pool, sizeof(**out));
    (*out)->fd = own;
    apr_pool_cleanup_register(pool, *out, close_socket, apr_pool_cleanup_null);
    return APR_SUCCESS;
}

int agent_client_socket_descriptor(const agent_client_socket_t *client)
{
    return client->fd;
}

void agent_client_socket_shut_down(const agent_client_socket_t *client, int how)
{
    shutdown(client->fd, how);
}
