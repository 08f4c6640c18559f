/* SPDX-License-Identifier: Apache-2.0 */
/* States of recent threads. */
#include "warm.h"

#include <string.h>

#include <apr_strings.h>

#include "core/json.h"

/* The memory of an entry without its state. */
#define ENTRY_BYTES 512

struct runner_warm_state_t {
    APR_RING_ENTRY(runner_warm_state_t) link;
    char thread_id[AGENT_UUID_SIZE];
    char checkpoint_id[AGENT_UUID_SIZE];
    /* The graph whose run left it. */
    const runner_graph_t *graph;
    /* One reference. */
    json_object *values;
    /* The members of the run. */
    size_t weight;
    size_t tree_weight;
    size_t state_size;
    runner_tally_t tally;
    bool is_checked;
    apr_time_t kept_at;
};

static runner_warm_state_t *make_state(runner_warm_t *warm)
{
    runner_warm_state_t *state;

    if (APR_RING_EMPTY(&warm->unused, runner_warm_state_t, link)) {
        return apr_pcalloc(warm->pool, sizeof(*state));
    }
    state = APR_RING_FIRST(&warm->unused);
    APR_RING_REMOVE(state, link);
    return state;
}

/* Takes an entry out of the table. The caller has its reference of the values.
 */
static void remove_state(runner_warm_t *warm, runner_warm_state_t *state)
{
    apr_hash_set(warm->by_thread, state->thread_id, AGENT_UUID_SIZE - 1, NULL);
    APR_RING_REMOVE(state, link);
    APR_RING_INSERT_TAIL(&warm->unused, state, runner_warm_state_t, link);
    warm->bytes -= state->weight + ENTRY_BYTES;
}

static size_t drop(runner_warm_t *warm, runner_warm_state_t *state)
{
    remove_state(warm, state);
    json_object_put(state->values);
    return state->weight + ENTRY_BYTES;
}

static apr_status_t drop_all(void *data)
{
    runner_warm_t *warm = data;

    while (!APR_RING_EMPTY(&warm->states, runner_warm_state_t, link)) {
        drop(warm, APR_RING_FIRST(&warm->states));
    }
    return APR_SUCCESS;
}

runner_warm_t *runner_warm_make(apr_pool_t *pool)
{
    runner_warm_t *warm = apr_pcalloc(pool, sizeof(*warm));

    warm->pool = pool;
    warm->by_thread = apr_hash_make(pool);
    APR_RING_INIT(&warm->states, runner_warm_state_t, link);
    APR_RING_INIT(&warm->unused, runner_warm_state_t, link);
    apr_pool_cleanup_register(pool, warm, drop_all, apr_pool_cleanup_null);
    return warm;
}

static runner_warm_state_t *find(const runner_warm_t *warm,
                                 const runner_run_t *run)
{
    return apr_hash_get(warm->by_thread, run->thread_id, AGENT_UUID_SIZE - 1);
}

void runner_warm_keep(runner_warm_t *warm, runner_run_t *run, apr_time_t now)
{
    runner_warm_state_t *state = find(warm, run);

    if (!run->is_at_checkpoint || run->is_too_large || run->graph == NULL) {
        return;
    }
    if (state != NULL) {
        drop(warm, state);
    }
    state = make_state(warm);
    memcpy(state->thread_id, run->thread_id, sizeof(state->thread_id));
    memcpy(state->checkpoint_id, run->checkpoint_id,
           sizeof(state->checkpoint_id));
    state->graph = run->graph;
    state->values = json_object_get(run->values);
    state->weight = run->weight;
    state->tree_weight = run->tree_weight;
    state->state_size = run->state_size;
    state->tally = run->tally;
    state->is_checked = run->is_checked;
    state->kept_at = now;
    apr_hash_set(warm->by_thread, state->thread_id, AGENT_UUID_SIZE - 1, state);
    APR_RING_INSERT_TAIL(&warm->states, state, runner_warm_state_t, link);
    warm->bytes += state->weight + ENTRY_BYTES;
}

bool runner_warm_take(runner_warm_t *warm, runner_run_t *run,
                      const char *checkpoint_id)
{
    runner_warm_state_t *state = find(warm, run);

    if (state == NULL) {
        return false;
    }
    if (state->graph != run->graph
        || strcmp(state->checkpoint_id, checkpoint_id) != 0) {
        drop(warm, state);
        return false;
    }
    remove_state(warm, state);
    run->values = agent_json_own(state->values, run->pool);
    run->state_weight = state->weight;
    run->tree_weight = state->tree_weight;
    run->state_size = state->state_size;
    run->tally = state->tally;
    run->is_checked = state->is_checked;
    return true;
}

size_t runner_warm_trim(runner_warm_t *warm, size_t bytes_max, apr_time_t now)
{
    size_t dropped = 0;

    while (!APR_RING_EMPTY(&warm->states, runner_warm_state_t, link)) {
        runner_warm_state_t *state = APR_RING_FIRST(&warm->states);

        if (warm->bytes <= bytes_max
            && now - state->kept_at < RUNNER_WARM_TIME) {
            return dropped;
        }
        dropped += drop(warm, state);
    }
    return dropped;
}
