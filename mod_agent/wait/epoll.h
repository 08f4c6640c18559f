/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of descriptors whose events are identified by serial numbers. */
#ifndef AGENT_WAIT_EPOLL_H
#define AGENT_WAIT_EPOLL_H

#include <stdint.h>

#include <apr_errno.h>

/* epoll_ctl(): operation is EPOLL_CTL_ADD or EPOLL_CTL_MOD, events are those of
 * epoll, which come with the serial number. Errors: of epoll_ctl(). */
apr_status_t agent_epoll_control(int epoll_fd, int operation, int fd,
                                 uint64_t serial, uint32_t events);

#endif
