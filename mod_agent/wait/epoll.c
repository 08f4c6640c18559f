/* SPDX-License-Identifier: Apache-2.0 */
#include "epoll.h"

#include <sys/epoll.h>

apr_status_t agent_epoll_control(int epoll_fd, int operation, int fd,
                                 uint64_t serial, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.u64 = serial};

    return epoll_ctl(epoll_fd, operation, fd, &event) == 0 ? APR_SUCCESS
                                                           : apr_get_os_error();
}
