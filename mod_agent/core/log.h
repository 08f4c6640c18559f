/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log of code without httpd's headers: a callback that writes to httpd's
 * error log or to stderr.
 */
#ifndef AGENT_CORE_LOG_H
#define AGENT_CORE_LOG_H

#include <apr_errno.h>

/* The numbers are syslog's, and so httpd's. */
typedef enum agent_log_level_t {
    AGENT_LOG_ERR = 3,
    AGENT_LOG_WARNING = 4,
    AGENT_LOG_NOTICE = 5,
    AGENT_LOG_INFO = 6,
    AGENT_LOG_DEBUG = 7
} agent_log_level_t;

typedef struct agent_log_t {
    /*
     * id is the message's number in messages.md ("AGT0301"); text is one line
     * without a trailing newline. rv is 0 when no status belongs to it.
     */
    void (*write)(void *baton, agent_log_level_t level, const char *id,
                  apr_status_t rv, const char *text);
    void *baton;
} agent_log_t;

#endif
