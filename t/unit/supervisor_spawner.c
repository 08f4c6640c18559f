/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: supervisor/process/ core/clock.c */
/* Requests to the spawner; see supervisor/process/spawner.h. */
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include "../../mod_agent/supervisor/process/spawner.h"

/* The next update of that runner. */
static agent_spawner_update_t wait_update(const agent_spawner_t *spawner,
                                          apr_uint32_t expected_id, int *value)
{
    struct pollfd ready = {.fd = spawner->fd, .events = POLLIN};
    agent_spawner_update_t update;
    apr_uint32_t id;

    do {
        poll(&ready, 1, -1);
        update = agent_spawner_receive(spawner, &id, value);
    } while (update == AGENT_SPAWNER_NOTHING);
    if (update != AGENT_SPAWNER_LOST) {
        assert_int_equal(id, expected_id);
    }
    return update;
}

static void only_pools_of_the_configuration_get_runners(void **state)
{
    static const int unknown[] = {-1, 1, 2, 1 << 30, INT_MAX, INT_MIN};
    agent_pool_config_t pool = {.deployment = "default",
                                .program = "/bin/true",
                                .uid = (uid_t)-1,
                                .gid = (gid_t)-1};
    const agent_supervisor_config_t config = {.uid = (uid_t)-1,
                                              .gid = (gid_t)-1,
                                              .pools = &pool,
                                              .pool_count = 1,
                                              .wake_fd = -1,
                                              .life_fd = -1};
    agent_spawner_t spawner;
    const char *path = NULL;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    const int fds[AGENT_SPAWNER_FDS] = {null, null, null};
    int value;

    assert_int_equal(agent_spawner_start(&spawner, &config, &path),
                     APR_SUCCESS);
    for (int i = 0; i < (int)(sizeof(unknown) / sizeof(unknown[0])); i++) {
        apr_uint32_t id = (apr_uint32_t)i + 1;

        assert_int_equal(agent_spawner_spawn(&spawner, id, unknown[i], fds),
                         APR_SUCCESS);
        assert_int_equal(wait_update(&spawner, id, &value),
                         AGENT_SPAWNER_REFUSED);
        assert_int_equal(value, EINVAL);
    }
    assert_int_equal(agent_spawner_spawn(&spawner, 100, 0, fds), APR_SUCCESS);
    assert_int_equal(wait_update(&spawner, 100, &value), AGENT_SPAWNER_STARTED);
    assert_int_equal(wait_update(&spawner, 100, &value), AGENT_SPAWNER_EXITED);
    agent_spawner_stop(&spawner, 10000);
    close(null);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(only_pools_of_the_configuration_get_runners),
    };

    return CHECK_RUN(tests);
}
