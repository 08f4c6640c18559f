/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the newest events of all streams at once, in the hear thread: one
 * statement for what has changed, instead of one for each stream. The same
 * statement says from time to time whether runs have ended, or gone on,
 * without anybody being told: the next time that something is heard, or that
 * the connection is probed.
 *
 * It is a short cut on top of looking: a stream asks for it when it has all
 * events so far, and looks for itself whenever something is not simple. So
 * nothing is lost when anything fails here.
 */
#include "state.h"

#include <string.h>

#include <apr_strings.h>

#include "../core/allocator.h"
#include "dispatch.h"

/* Of one run at once; more are looked up. */
#define EVENTS_MAX 100
/* Waiting for one stream; a client that reads so slowly looks for itself. */
#define BYTES_MAX (64 * 1024)

#define REST_FROM apr_time_from_msec(5)
#define REST_MAX  apr_time_from_msec(50)

/* What the next statement asks for. */
struct agent_wait_wanted_t {
    apr_pool_t *pool;
    /* Run id -> want_t. */
    apr_hash_t *runs;
};

typedef struct want_t {
    const char *account_id;
    const char *run_id;
    apr_int64_t after;
} want_t;

typedef struct agent_wait_wanted_t wanted_t;

static wanted_t *make_wanted(apr_pool_t *pool)
{
    wanted_t *wanted = apr_palloc(pool, sizeof(*wanted));

    wanted->pool = agent_allocator_make_apart(pool);
    wanted->runs = apr_hash_make(wanted->pool);
    return wanted;
}

void agent_wait_make_wanted(agent_waits_t *waits, apr_pool_t *pool)
{
    waits->wanted = make_wanted(pool);
    waits->asked = make_wanted(pool);
}

static void want_locked(wanted_t *wanted, const agent_waiter_t *waiter)
{
    want_t *want = apr_hash_get(wanted->runs, waiter->entry.key,
                                APR_HASH_KEY_STRING);

    if (want == NULL) {
        want = apr_palloc(wanted->pool, sizeof(*want));
        want->account_id = apr_pstrdup(wanted->pool, waiter->entry.account_id);
        want->run_id = apr_pstrdup(wanted->pool, waiter->entry.key);
        want->after = waiter->brought;
        apr_hash_set(wanted->runs, want->run_id, APR_HASH_KEY_STRING, want);
    }
    else if (waiter->brought < want->after) {
        want->after = waiter->brought;
    }
}

bool agent_wait_want_review_locked(agent_waiter_t *waiter)
{
    if (waiter->brought == AGENT_WAIT_NO_NEWS) {
        return false;
    }
    want_locked(waiter->waits->wanted, waiter);
    return true;
}

void agent_wait_note_change(agent_waits_t *waits, const char *key,
                            apr_ssize_t length)
{
    agent_waiter_t *waiter;

    apr_thread_mutex_lock(waits->mutex);
    for (waiter = apr_hash_get(waits->by_key, key, length); waiter != NULL;
         waiter = waiter->next) {
        if (waiter->brought == AGENT_WAIT_NO_NEWS
            || waiter->brought == AGENT_WAIT_END_ONLY) {
            agent_wait_wake_locked(waiter, AGENT_WAIT_WOKEN);
        }
        else {
            want_locked(waits->wanted, waiter);
        }
    }
    apr_thread_mutex_unlock(waits->mutex);
}

/* The waiter looks for itself, and asks again when it has. */
static void refer_locked(agent_waiter_t *waiter)
{
    waiter->brought = AGENT_WAIT_NO_NEWS;
    agent_wait_drop_coming_locked(waiter);
    agent_wait_wake_locked(waiter, AGENT_WAIT_WOKEN);
}

static void bring_locked(agent_waiter_t *waiter, apr_int64_t seq,
                         const char *name, const char *data)
{
    agent_wait_event_t *event;

    if (waiter->coming == NULL) {
        waiter->coming = apr_array_make(agent_waits_make_pool(waiter->waits), 4,
                                        sizeof(agent_wait_event_t));
    }
    event = apr_array_push(waiter->coming);
    event->seq = seq;
    event->name = apr_pstrdup(waiter->coming->pool, name);
    event->data = apr_pstrdup(waiter->coming->pool, data);
    waiter->brought = seq;
    waiter->coming_bytes += strlen(name) + strlen(data);
    agent_wait_wake_locked(waiter, AGENT_WAIT_NEWS);
}

static void hand_out_locked(agent_waits_t *waits,
                            const agent_db_result_t *result, int row)
{
    const char *seq_text = agent_db_value(result, row, 1);
    const char *name = agent_db_value(result, row, 2);
    apr_int64_t seq = seq_text != NULL ? apr_atoi64(seq_text) : 0;
    agent_waiter_t *waiter = apr_hash_get(
        waits->by_key, agent_db_value(result, row, 0), APR_HASH_KEY_STRING);

    for (; waiter != NULL; waiter = waiter->next) {
        if (waiter->brought == AGENT_WAIT_NO_NEWS) {
            continue;
        }
        if (name == NULL || seq > waiter->brought + 1
            || waiter->coming_bytes > BYTES_MAX) {
            refer_locked(waiter);
        }
        else if (seq == waiter->brought + 1) {
            bring_locked(waiter, seq, name, agent_db_value(result, row, 3));
        }
    }
}

static void refer_all_locked(agent_waits_t *waits, const wanted_t *asked)
{
    apr_hash_index_t *index = apr_hash_first(asked->pool, asked->runs);

    for (; index != NULL; index = apr_hash_next(index)) {
        agent_waiter_t *waiter = apr_hash_get(
            waits->by_key, apr_hash_this_key(index), APR_HASH_KEY_STRING);

        for (; waiter != NULL; waiter = waiter->next) {
            refer_locked(waiter);
        }
    }
}

static apr_status_t read_updates(agent_db_result_t **result,
                                 const agent_waits_t *waits)
{
    const wanted_t *asked = waits->asked;
    apr_pool_t *pool = asked->pool;
    int count = (int)apr_hash_count(asked->runs);
    const char **accounts = apr_palloc(pool, count * sizeof(*accounts));
    const char **runs = apr_palloc(pool, count * sizeof(*runs));
    const char **afters = apr_palloc(pool, count * sizeof(*afters));
    apr_hash_index_t *index = apr_hash_first(pool, asked->runs);
    agent_error_t *err;
    int i = 0;

    /* Bounded: the requests that wait; a number each, in a pool of this turn.
     */
    for (; index != NULL; index = apr_hash_next(index), i++) {
        const want_t *want = apr_hash_this_val(index);

        accounts[i] = want->account_id;
        runs[i] = want->run_id;
        afters[i] = apr_psprintf(pool, "%" APR_INT64_T_FMT, want->after);
    }
    {
        const char *params[] = {
            agent_db_array(accounts, (apr_size_t)count, pool),
            agent_db_array(runs, (apr_size_t)count, pool),
            agent_db_array(afters, (apr_size_t)count, pool),
            APR_STRINGIFY(EVENTS_MAX)};

        return agent_pool_query(result, waits->db, AGENT_SQL_READ_UPDATES,
                                params, &err, pool);
    }
}

/* Under load one fetch takes long: resting as long lets events gather, so that
 * each turn of a stream sends several. */
static void rest(apr_time_t began)
{
    apr_interval_time_t took = apr_time_now() - began;

    if (took > REST_FROM) {
        apr_sleep(took < REST_MAX ? took : REST_MAX);
    }
}

static void fetch(agent_waits_t *waits)
{
    wanted_t *asked = waits->asked;
    agent_db_result_t *result = NULL;
    apr_status_t rv = read_updates(&result, waits);

    apr_thread_mutex_lock(waits->mutex);
    if (rv != APR_SUCCESS) {
        refer_all_locked(waits, asked);
    }
    for (int row = 0; rv == APR_SUCCESS && row < agent_db_rows(result); row++) {
        hand_out_locked(waits, result, row);
    }
    apr_thread_mutex_unlock(waits->mutex);
    apr_pool_clear(asked->pool);
    asked->runs = apr_hash_make(asked->pool);
}

/* What is wanted from now on belongs to the next statement. */
static bool take_wanted(agent_waits_t *waits)
{
    wanted_t *wanted;

    apr_thread_mutex_lock(waits->mutex);
    wanted = waits->wanted;
    waits->wanted = waits->asked;
    waits->asked = wanted;
    apr_thread_mutex_unlock(waits->mutex);
    return apr_hash_count(wanted->runs) > 0;
}

void agent_wait_fetch_news(agent_waits_t *waits)
{
    apr_time_t began = apr_time_now();

    if (take_wanted(waits)) {
        fetch(waits);
        rest(began);
    }
}
