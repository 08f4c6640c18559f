/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration of the supervisor. */
#ifndef AGENT_SUPERVISOR_CONFIG_H
#define AGENT_SUPERVISOR_CONFIG_H

#include <stdbool.h>
#include <sys/types.h>

#include <apr_time.h>

#include "../../core/limit.h"
#include "../../core/log.h"
#include "pool_config.h"
#include "webhook_config.h"

/* Seconds of a worker's lease in the database. */
#define AGENT_SUPERVISOR_LEASE_SEC 20

/* Connections to the database that a supervisor keeps open: control, bulk,
 * output. */
#define AGENT_SUPERVISOR_CONNECTIONS 3

/* Timeouts; 0: the default. Only tests and very slow machines need others. */
typedef struct agent_supervisor_timing_t {
    /* Between two pings of a runner (10 s), and for its pong (15 s). */
    apr_interval_time_t ping_interval;
    apr_interval_time_t ping_timeout;
    /* For a new runner to say `ready` (30 s). */
    apr_interval_time_t ready_timeout;
    /* From the failure of a graph's import until the next one (10 min). */
    apr_interval_time_t import_pause;
    /* For a cancelled run to end (10 s). */
    apr_interval_time_t cancel_grace;
    /* For the runs of a runner that drains, unless its replacement was ready
     * before (60 s). */
    apr_interval_time_t drain_grace;
    /* Quarantine of a run (10 s; six times as long each time after it has
     * passed). */
    apr_interval_time_t quarantine;
    /* Between two renewals (a quarter of the lease); without a renewal, until
     * runners are stopped (13/20 of the lease) and killed (the lease). */
    apr_interval_time_t renew;
    apr_interval_time_t stop;
    apr_interval_time_t kill;
    /* Longest statement on the control connection (a quarter of the lease); on
     * the others twice as long. */
    apr_interval_time_t statement;
    /* How long a line of output alone may fail for reasons outside of it, while
     * output of others is saved (5 min); twelve times as long in any case. */
    apr_interval_time_t patience;
    /* Until credit that a run does not use lapses (10 s). */
    apr_interval_time_t credit;
} agent_supervisor_timing_t;

typedef struct agent_supervisor_config_t {
    /* libpq's connection string. */
    const char *conninfo;
    /* The region that the database must belong to; NULL: any. */
    const char *region;
    /* Children of httpd, and the connections that each may open to the same
     * database; 0: not known. */
    int children;
    int child_connections;
    /* Names this host among those that share the database. */
    const char *node_name;
    /* User of the supervisor; (uid_t)-1: unchanged. */
    uid_t uid;
    gid_t gid;
    /* The graphs that this host executes, by pools; AGENT_POOLS_MAX_RUNNERS
     * limits the sum of their runners. */
    agent_pool_config_t *pools;
    int pool_count;
    /* The directory of a delegated cgroup (v2), checked with
     * agent_cgroup_check(), below which each pool with processes has one; NULL:
     * none. */
    const char *cgroup;
    /* How long runs may continue after a drain began. */
    apr_interval_time_t drain_timeout;
    /* Lease of the worker in the database; AGENT_SUPERVISOR_LEASE_SEC, except
     * in tests. */
    int lease_sec;
    agent_stored_limits_t limits;
    /* Days for which events, and webhooks that were given up, are kept; 0: for
     * ever. */
    int event_retention_days;
    /* Days for which the audit log is kept. */
    int audit_retention_days;
    /*
     * Read end of a SOCK_DGRAM pair, or -1: the datagrams of core/wake.h, which
     * may be lost.
     */
    int wake_fd;
    /*
     * Read end of a pipe that the parent keeps open, or -1. At end of file, or
     * when the parent process changes (checked each second), runs are released
     * and the supervisor ends, within 2 s if the database does not answer.
     */
    int life_fd;
    agent_log_t log;
    /*
     * A descriptor that log needs; 0: none but standard error. All descriptors
     * other than this one, the two above and 2 are closed.
     */
    int log_fd;
    agent_webhook_config_t webhooks;
    agent_supervisor_timing_t timing;
} agent_supervisor_config_t;

#endif
