/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes that are held for clients that do not read; see held.h. */
#include "held.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <apr_ring.h>
#include <apr_thread_mutex.h>
#include <apr_time.h>

struct agent_holder_t {
    APR_RING_ENTRY(agent_holder_t) link;
    agent_held_t *held;
    /* 0 = not in the ring. */
    apr_size_t bytes;
    /* When the client last took something. */
    apr_time_t progress_at;
    /* A duplicate, so that no other connection can have its number. */
    int fd;
    /* Shut down, and its bytes are no more counted. */
    bool is_cut;
};

APR_RING_HEAD(holder_ring_t, agent_holder_t);

struct agent_held_t {
    apr_thread_mutex_t *mutex;
    apr_size_t budget;
    /* Under mutex: */
    apr_size_t bytes;
    struct holder_ring_t holders;
};

apr_status_t agent_held_create(agent_held_t **out, apr_size_t budget_bytes,
                               apr_pool_t *pool)
{
    agent_held_t *held = apr_pcalloc(pool, sizeof(*held));

    held->budget = budget_bytes;
    APR_RING_INIT(&held->holders, agent_holder_t, link);
    *out = held;
    return apr_thread_mutex_create(&held->mutex, APR_THREAD_MUTEX_DEFAULT,
                                   pool);
}

static void enter_locked(agent_holder_t *holder, int fd)
{
    holder->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    APR_RING_INSERT_TAIL(&holder->held->holders, holder, agent_holder_t, link);
}

static void leave_locked(agent_holder_t *holder)
{
    APR_RING_REMOVE(holder, link);
    if (holder->fd >= 0) {
        close(holder->fd);
    }
}

/* What it holds, by how long it has done so. */
static double weigh(const agent_holder_t *holder, apr_time_t now)
{
    return holder->is_cut
        ? 0
        : (double)holder->bytes * (double)(now - holder->progress_at + 1);
}

static agent_holder_t *find_heaviest_locked(agent_held_t *held, apr_time_t now)
{
    agent_holder_t *heaviest = NULL;
    agent_holder_t *holder;

    APR_RING_FOREACH(holder, &held->holders, agent_holder_t, link)
    {
        if (weigh(holder, now) > (heaviest ? weigh(heaviest, now) : 0)) {
            heaviest = holder;
        }
    }
    return heaviest;
}

static void cut_locked(agent_holder_t *holder)
{
    holder->is_cut = true;
    holder->held->bytes -= holder->bytes;
    if (holder->fd >= 0) {
        shutdown(holder->fd, SHUT_RDWR);
    }
}

static void keep_budget_locked(agent_held_t *held, apr_time_t now)
{
    while (held->bytes > held->budget) {
        agent_holder_t *heaviest = find_heaviest_locked(held, now);

        if (heaviest == NULL) {
            return;
        }
        cut_locked(heaviest);
    }
}

static void set_bytes_locked(agent_holder_t *holder, apr_size_t bytes, int fd)
{
    apr_time_t now = apr_time_now();

    if (holder->bytes == 0) {
        enter_locked(holder, fd);
        holder->progress_at = now;
    }
    if (bytes < holder->bytes) {
        holder->progress_at = now;
    }
    if (!holder->is_cut) {
        holder->held->bytes += bytes;
        holder->held->bytes -= holder->bytes;
    }
    holder->bytes = bytes;
    if (bytes == 0) {
        leave_locked(holder);
    }
    else {
        keep_budget_locked(holder->held, now);
    }
}

bool agent_held_update(agent_holder_t *holder, apr_size_t bytes, int fd)
{
    bool is_cut;

    /* The owner alone writes its bytes. */
    if (bytes == holder->bytes) {
        return true;
    }
    apr_thread_mutex_lock(holder->held->mutex);
    set_bytes_locked(holder, bytes, fd);
    is_cut = holder->is_cut;
    holder->is_cut = is_cut && bytes > 0;
    apr_thread_mutex_unlock(holder->held->mutex);
    return !is_cut;
}

static apr_status_t leave_with_pool(void *holder)
{
    agent_held_update(holder, 0, -1);
    return APR_SUCCESS;
}

agent_holder_t *agent_held_add(agent_held_t *held, apr_pool_t *pool)
{
    agent_holder_t *holder = apr_pcalloc(pool, sizeof(*holder));

    holder->held = held;
    holder->fd = -1;
    apr_pool_pre_cleanup_register(pool, holder, leave_with_pool);
    return holder;
}
