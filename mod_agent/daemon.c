/* SPDX-License-Identifier: Apache-2.0 */
/*
 * httpd's side of the supervisor; see daemon.h.
 *
 * A socket pair for each configuration wakes the supervisor. The life pipe, one
 * for each parent process, reports the parent's death: only the parent holds
 * its write end, which the kernel closes when the parent dies. At a restart,
 * which the parent survives, SIGUSR1 makes the old supervisor finish its runs
 * while the new one already claims. A graceful stop does the same without a new
 * one, and the parent waits for the old one.
 *
 * Every descriptor is close-on-exec: processes that httpd starts, piped loggers
 * and CGI scripts among them, would otherwise keep the life pipe open.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ap_listen.h>
#include <ap_mpm.h>
#include <apr_portable.h>
#include <apr_strings.h>
#include <apr_thread_proc.h>
#include <http_log.h>
#include <http_main.h>
#include <mpm_common.h>
#include <unixd.h>

#include "config/account_limit.h"
#include "config/capacity.h"
#include "config/dbd.h"
#include "config/location.h"
#include "config/region.h"
#include "core/version.h"
#include "pools.h"
#include "private.h"
#include "supervisor/supervisor.h"

/* A supervisor that ends within this time of its start is restarted after a
 * pause. */
#define CRASH_LOOP apr_time_from_sec(2)
/* In a graceful stop: time for the supervisor to end after AgentDrainTimeout,
 * and the interval at which the parent checks that it has ended. */
#define DRAIN_REST    apr_time_from_sec(20)
#define WAIT_INTERVAL apr_time_from_msec(100)

typedef struct daemon_t {
    server_rec *server;
    pid_t parent_pid;
    apr_pool_t *pconf;
    agent_supervisor_config_t supervisor;
    int wake_fds[2];
    /* The parent's end of the life pipe. */
    int life_write_fd;
    apr_proc_t process;
    /* Registered with apr_proc_other_child_*(); APR crashes when an unknown
     * process is unregistered. */
    bool watched;
    /* The start failed; agent_daemon_monitor() tries again. */
    bool missing;
    apr_time_t started_at;
    /* httpd -X: the parent is its own child. */
    bool is_one_process;
    /* When a graceful stop began; 0 before. */
    apr_time_t stop_at;
} daemon_t;

/* Set in post_config; read-only in children. */
static daemon_t *current_daemon;

static const char life_key[] = "agent_life_pipe";

static void write_log(void *baton, agent_log_level_t level, const char *id,
                      apr_status_t rv, const char *text)
{
    ap_log_error(APLOG_MARK, (int)level, rv, ap_server_conf, "%s: %s", id,
                 text);
}

agent_log_t agent_daemon_log(void)
{
    agent_log_t log = {write_log, NULL};

    return log;
}

/* The pipe survives restarts, as the parent does. */
static int *find_life_pipe(server_rec *server)
{
    apr_pool_t *process_pool = server->process->pool;
    void *fds = NULL;

    apr_pool_userdata_get(&fds, life_key, process_pool);
    if (fds == NULL) {
        fds = apr_pcalloc(process_pool, 2 * sizeof(int));
        if (pipe2(fds, O_CLOEXEC) != 0) {
            return NULL;
        }
        /* APR copies the key: the module's own is unmapped when it is
         * reloaded. */
        apr_pool_userdata_set(fds, life_key, NULL, process_pool);
    }
    return fds;
}

/* ---- the forked process ---- */

static void run_supervisor(daemon_t *daemon, bool pause)
{
    /* Leaves the parent's process group, which an ungraceful stop signals. */
    setpgid(0, 0);
    ap_close_listeners();
    close(daemon->life_write_fd);
    close(daemon->wake_fds[1]);
    /* Not in the parent, whose children would inherit it: it contains the keys
     * of models. */
    agent_pools_print_graphs(&daemon->supervisor,
                             agent_config_server(daemon->server),
                             daemon->pconf);
    if (pause) {
        apr_sleep(apr_time_from_sec(1));
    }
    _exit(agent_supervisor_main(&daemon->supervisor));
}

static void watch_supervisor(int reason, void *data, apr_wait_t status);

static apr_status_t fork_supervisor(daemon_t *daemon, bool pause)
{
    apr_status_t rv = apr_proc_fork(&daemon->process, daemon->pconf);

    if (rv == APR_INCHILD) {
        run_supervisor(daemon, pause);
    }
    if (rv != APR_INPARENT) {
        return rv;
    }
    daemon->started_at = apr_time_now();
    apr_proc_other_child_register(&daemon->process, watch_supervisor, daemon,
                                  NULL, daemon->pconf);
    daemon->watched = true;
    return APR_SUCCESS;
}

static void unwatch_supervisor(daemon_t *daemon)
{
    if (daemon->watched) {
        daemon->watched = false;
        apr_proc_other_child_unregister(daemon);
    }
}

static bool is_stopping(void)
{
    int state = AP_MPMQ_STOPPING;

    return ap_mpm_query(AP_MPMQ_MPM_STATE, &state) == APR_SUCCESS
        && state == AP_MPMQ_STOPPING;
}

/* Logs one line for all attempts that fail in a row. */
static void start_supervisor(daemon_t *daemon, bool pause)
{
    apr_status_t rv = fork_supervisor(daemon, pause);

    if (rv != APR_SUCCESS && !daemon->missing) {
        ap_log_error(APLOG_MARK, APLOG_ERR, rv, ap_server_conf,
                     AGENT_LOGNO(0402) "the supervisor could not be started: "
                                       "runs are accepted but not executed; "
                                       "the start is repeated about "
                                       "every 10 s");
    }
    daemon->missing = rv != APR_SUCCESS;
}

/* Called by the parent, within a second after the supervisor's death. */
static void watch_supervisor(int reason, void *data, apr_wait_t status)
{
    daemon_t *daemon = data;
    int pid = (int)daemon->process.pid;

    if (reason != APR_OC_REASON_DEATH && reason != APR_OC_REASON_LOST) {
        return;
    }
    unwatch_supervisor(daemon);
    /* The process id may soon be reused. */
    daemon->process.pid = 0;
    if (is_stopping()) {
        return;
    }
    ap_log_error(APLOG_MARK, APLOG_ERR, 0, ap_server_conf,
                 AGENT_LOGNO(0401) "the supervisor (pid %d) died: it is "
                                   "started again",
                 pid);
    start_supervisor(daemon, apr_time_now() - daemon->started_at < CRASH_LOOP);
}

int agent_daemon_monitor(apr_pool_t *pool, server_rec *server)
{
    if (current_daemon != NULL && current_daemon->missing && !is_stopping()) {
        start_supervisor(current_daemon, false);
    }
    return OK;
}

/* ---- graceful stop ---- */

/* The MPM's, while end_now() is installed. */
static struct sigaction mpm_sigterm;
static struct sigaction mpm_sigint;

/* SIGTERM or SIGINT after a graceful stop has begun: the supervisor requeues
 * its runs at once. The MPM then receives the signal, too. */
static void end_now(int number)
{
    /* Valid: nothing reaps the supervisor before wait_supervisor(). */
    kill(current_daemon->process.pid, SIGTERM);
    sigaction(number, number == SIGTERM ? &mpm_sigterm : &mpm_sigint, NULL);
    raise(number);
}

static void begin_stop(daemon_t *daemon)
{
    struct sigaction action = {.sa_handler = end_now};

    daemon->stop_at = apr_time_now();
    unwatch_supervisor(daemon);
    if (daemon->process.pid > 0) {
        kill(daemon->process.pid, SIGUSR1);
        sigaction(SIGTERM, &action, &mpm_sigterm);
        sigaction(SIGINT, &action, &mpm_sigint);
    }
}

/* The MPM closes the listeners in the parent only for a graceful stop. */
void agent_daemon_check_stop(const ap_errorlog_info *info, const char *text)
{
    daemon_t *daemon = current_daemon;

    if (daemon != NULL && daemon->stop_at == 0 && !daemon->is_one_process
        && daemon->parent_pid == getpid() && is_stopping()
        && ap_listeners != NULL && !ap_listeners->active) {
        begin_stop(daemon);
    }
}

/* Waits until the supervisor has ended. After the time limit the parent ends
 * first: the supervisor then requeues its runs and ends. */
static void wait_supervisor(daemon_t *daemon)
{
    apr_time_t until = daemon->stop_at + daemon->supervisor.drain_timeout
        + DRAIN_REST;
    apr_time_t limit = daemon->stop_at
        + apr_time_from_sec(ap_graceful_shutdown_timeout);

    if (ap_graceful_shutdown_timeout > 0 && limit < until) {
        until = limit;
    }
    while (apr_proc_wait(&daemon->process, NULL, NULL, APR_NOWAIT)
               == APR_CHILD_NOTDONE
           && apr_time_now() < until) {
        apr_sleep(WAIT_INTERVAL);
    }
    sigaction(SIGTERM, &mpm_sigterm, NULL);
    sigaction(SIGINT, &mpm_sigint, NULL);
}

/* ---- start and end ---- */

/* Makes the supervisor drain. In graceful and ungraceful restarts runs are
 * finished, not aborted. In a stop the parent ends right after this, in a
 * graceful stop only after the supervisor. */
static apr_status_t end_generation(void *data)
{
    daemon_t *daemon = data;

    unwatch_supervisor(daemon);
    /* 0 would signal this process and all of its group. */
    if (daemon->process.pid > 0) {
        kill(daemon->process.pid, SIGUSR1);
        if (daemon->stop_at != 0) {
            wait_supervisor(daemon);
        }
    }
    close(daemon->wake_fds[0]);
    close(daemon->wake_fds[1]);
    current_daemon = NULL;
    return APR_SUCCESS;
}

/* The keys are not copied: agent_config_erase_keys() must find the only
 * copy. */
static void fill_keys(agent_webhook_config_t *webhooks,
                      const agent_server_config_t *config, apr_pool_t *pool)
{
    int count = config->webhook_secrets->nelts;
    agent_webhook_key_t *keys = apr_palloc(pool,
                                           (apr_size_t)count * sizeof(*keys));

    for (int i = 0; i < count; i++) {
        const agent_webhook_secret_t *secret = &APR_ARRAY_IDX(
            config->webhook_secrets, i, const agent_webhook_secret_t);

        keys[i].deployment = secret->server->is_virtual
            ? agent_location_host_deployment(secret->server)
            : NULL;
        keys[i].bytes = secret->key;
        keys[i].length = secret->length;
    }
    webhooks->keys = keys;
    webhooks->key_count = count;
}

/* Two hosts of a deployment may both have it. */
static bool has_header(const agent_webhook_config_t *webhooks,
                       const agent_webhook_header_text_t *header)
{
    for (int i = 0; i < webhooks->header_count; i++) {
        const agent_webhook_header_text_t *other = &webhooks->headers[i];

        if (strcasecmp(other->name, header->name) == 0
            && (other->deployment == NULL || header->deployment == NULL
                    ? other->deployment == header->deployment
                    : strcmp(other->deployment, header->deployment) == 0)) {
            return true;
        }
    }
    return false;
}

static void fill_headers(agent_webhook_config_t *webhooks,
                         const agent_server_config_t *config, apr_pool_t *pool)
{
    int count = config->webhook_headers->nelts;
    agent_webhook_header_text_t *headers = apr_palloc(
        pool, (apr_size_t)count * sizeof(*headers));

    webhooks->headers = headers;
    webhooks->header_count = 0;
    for (int i = 0; i < count; i++) {
        const agent_webhook_header_t *header = &APR_ARRAY_IDX(
            config->webhook_headers, i, const agent_webhook_header_t);
        const agent_webhook_header_text_t text = {
            header->server->is_virtual
                ? agent_location_host_deployment(header->server)
                : NULL,
            header->name, header->value};

        if (!has_header(webhooks, &text)) {
            headers[webhooks->header_count++] = text;
        }
    }
}

static void fill_webhooks(agent_webhook_config_t *webhooks,
                          const agent_server_config_t *config, apr_pool_t *pool)
{
    webhooks->egress = agent_config_webhook_egress(config);
    /* A server without graphs delivers no webhooks: those of other servers may
     * need a secret that it does not have. */
    webhooks->is_on = webhooks->egress != NULL && config->graphs->nelts > 0;
    fill_keys(webhooks, config, pool);
    fill_headers(webhooks, config, pool);
    webhooks->timeout = agent_config_webhook_timeout(config);
    webhooks->user_agent = "mod_agent/" AGENT_VERSION;
}

static void set_user(agent_supervisor_config_t *supervisor)
{
    bool is_root = geteuid() == 0;

    supervisor->uid = is_root ? ap_unixd_config.user_id : (uid_t)-1;
    supervisor->gid = is_root ? ap_unixd_config.group_id : (gid_t)-1;
}

/* Unknown if AgentDatabase differs from DBDParams: requests may use a
 * pooler. */
static void fill_connections(agent_supervisor_config_t *supervisor,
                             const agent_server_config_t *config,
                             apr_pool_t *pool)
{
    int most = agent_dbd_max(pool);
    int size = agent_config_pool_size(config, most);

    if (agent_dbd_is_shared(config, pool)) {
        supervisor->children = agent_capacity_children();
        supervisor->child_connections = agent_capacity_child_connections(
            size < most ? size : most);
    }
}

static void fill_supervisor(daemon_t *daemon,
                            const agent_server_config_t *config,
                            const char *conninfo, const int *life_fds)
{
    agent_supervisor_config_t *supervisor = &daemon->supervisor;
    int log_fd = STDERR_FILENO;

    supervisor->conninfo = conninfo;
    supervisor->region = agent_region_own(config);
    fill_connections(supervisor, config, daemon->pconf);
    supervisor->node_name = agent_config_node(config, daemon->pconf);
    set_user(supervisor);
    supervisor->drain_timeout = agent_config_drain_timeout(config);
    supervisor->limits = agent_account_limits_stored(config, daemon->pconf);
    supervisor->event_retention_days = agent_config_retention_days(config);
    supervisor->audit_retention_days = agent_config_audit_days(config);
    supervisor->lease_sec = AGENT_SUPERVISOR_LEASE_SEC;
    fill_webhooks(&supervisor->webhooks, config, daemon->pconf);
    supervisor->wake_fd = daemon->wake_fds[0];
    supervisor->life_fd = life_fds[0];
    supervisor->log = agent_daemon_log();
    if (daemon->server->error_log != NULL) {
        apr_os_file_get(&log_fd, daemon->server->error_log);
    }
    supervisor->log_fd = log_fd;
}

apr_status_t agent_daemon_start(agent_server_config_t *config,
                                const char *conninfo, server_rec *server,
                                apr_pool_t *pconf)
{
    daemon_t *daemon = apr_pcalloc(pconf, sizeof(*daemon));
    const int *life_fds = find_life_pipe(server);
    apr_status_t rv;

    if (life_fds == NULL
        || socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0,
                      daemon->wake_fds)
            != 0) {
        return apr_get_os_error();
    }
    daemon->server = server;
    daemon->parent_pid = getpid();
    daemon->pconf = pconf;
    daemon->life_write_fd = life_fds[1];
    fill_supervisor(daemon, config, conninfo, life_fds);
    rv = agent_pools_fill(&daemon->supervisor, config, server, pconf);
    if (rv != APR_SUCCESS) {
        close(daemon->wake_fds[0]);
        close(daemon->wake_fds[1]);
        return rv;
    }
    current_daemon = daemon;
    start_supervisor(daemon, false);
    /* Before APR's own cleanup of the registration. */
    apr_pool_pre_cleanup_register(pconf, daemon, end_generation);
    return APR_SUCCESS;
}

int agent_daemon_child_init(server_rec *server)
{
    int *life_fds = find_life_pipe(server);

    /* With httpd -X one process is both parent and child. */
    if (current_daemon != NULL && current_daemon->parent_pid == getpid()) {
        current_daemon->is_one_process = true;
        return current_daemon->wake_fds[1];
    }
    agent_config_erase_keys(agent_config_server(server));
    if (life_fds != NULL) {
        close(life_fds[0]);
        close(life_fds[1]);
    }
    if (current_daemon == NULL) {
        return -1;
    }
    close(current_daemon->wake_fds[0]);
    return current_daemon->wake_fds[1];
}
