/* SPDX-License-Identifier: Apache-2.0 */
/* Directives with the settings of runners, of a host; runner_settings.c has the
 * defaults. */
#include "directives.h"

#include "unused_directive.h"
#include "location.h"
#include "value.h"

/* The minimum is what a runner needs to start. */
static const agent_size_range_t memory_range = {
    APR_INT64_C(64) << 20, APR_INT64_C(1024) << 30, "64M", "1024G", true};

/* Records the directive, and returns the settings that it changes. */
static agent_runner_settings_t *begin_change(cmd_parms *cmd, void *dir)
{
    agent_unused_directive_record(cmd, NULL);
    return &((agent_dir_config_t *)dir)->runner;
}

static const char *set_number(int *out, cmd_parms *cmd, const char *arg,
                              int low, int high)
{
    apr_int64_t value = 0;
    const char *problem = agent_value_number(&value, cmd, arg, low, high);

    if (problem == NULL) {
        *out = (int)value;
    }
    return problem;
}

const char *agent_directive_runner_user(cmd_parms *cmd, void *dir,
                                        const char *arg)
{
    begin_change(cmd, dir)->user = arg;
    return NULL;
}

const char *agent_directive_runners(cmd_parms *cmd, void *dir, const char *arg)
{
    return set_number(&begin_change(cmd, dir)->runners, cmd, arg, 1, 64);
}

const char *agent_directive_runner_slots(cmd_parms *cmd, void *dir,
                                         const char *arg)
{
    return set_number(&begin_change(cmd, dir)->slots, cmd, arg, 1, 10000);
}

const char *agent_directive_runner_memory(cmd_parms *cmd, void *dir,
                                          const char *arg)
{
    return agent_value_size(&begin_change(cmd, dir)->memory, cmd, arg,
                            &memory_range);
}

const char *agent_directive_runner_max_runs(cmd_parms *cmd, void *dir,
                                            const char *arg)
{
    return set_number(&begin_change(cmd, dir)->max_runs, cmd, arg, 0,
                      1000000000);
}

const char *agent_directive_runner_recycle_memory(cmd_parms *cmd, void *dir,
                                                  const char *arg)
{
    return agent_value_size(&begin_change(cmd, dir)->recycle_memory, cmd, arg,
                            &memory_range);
}

const char *agent_directive_runner_files(cmd_parms *cmd, void *dir,
                                         const char *arg)
{
    return set_number(&begin_change(cmd, dir)->files, cmd, arg, 64, 1048576);
}

const char *agent_directive_runner_processes(cmd_parms *cmd, void *dir,
                                             const char *arg)
{
    return set_number(&begin_change(cmd, dir)->processes, cmd, arg, 0, 1000000);
}

const char *agent_directive_pool_memory(cmd_parms *cmd, void *dir,
                                        const char *arg)
{
    return agent_value_size(&begin_change(cmd, dir)->pool_memory, cmd, arg,
                            &memory_range);
}

const char *agent_directive_pool_processes(cmd_parms *cmd, void *dir,
                                           const char *arg)
{
    return set_number(&begin_change(cmd, dir)->pool_processes, cmd, arg, 0,
                      1000000);
}

const char *agent_directive_pool_cpu(cmd_parms *cmd, void *dir, const char *arg)
{
    return set_number(&begin_change(cmd, dir)->pool_cpu, cmd, arg, 0, 100000);
}

const char *agent_directive_runner_idle_time(cmd_parms *cmd, void *dir,
                                             const char *arg)
{
    static const agent_duration_range_t range = {0, 86400, "s", false};

    return agent_value_duration(&begin_change(cmd, dir)->idle_time, cmd, arg,
                                &range);
}

const char *agent_directive_run_timeout(cmd_parms *cmd, void *dir,
                                        const char *arg)
{
    static const agent_duration_range_t range = {1, 86400, "s", false};

    return agent_value_duration(&begin_change(cmd, dir)->run_timeout, cmd, arg,
                                &range);
}

const char *agent_directive_runner_busy_timeout(cmd_parms *cmd, void *dir,
                                                const char *arg)
{
    static const agent_duration_range_t range = {0, 86400, "s", false};

    return agent_value_duration(&begin_change(cmd, dir)->busy_timeout, cmd, arg,
                                &range);
}
