/* SPDX-License-Identifier: Apache-2.0 */
/* One lock for all; a condition for the worker and one per pending request. */
#include "queue.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#define PENDING_MAX 512
#define SECOND_US   1000000U
/* A thread that waits may be scheduled this much later. */
#define SCHEDULE_MS 1000U

struct rlr_queue_t {
    pthread_mutex_t lock;
    pthread_cond_t has_pending;
    rlr_wait_slots_t slots;
    uint32_t timeout_us;
    uint32_t brief_ms;
    uint32_t unanswered; /* pending requests */
    uint64_t since_ms;   /* since when none of them was sent or answered */
    bool is_stopped;
    _Atomic uint32_t away;        /* a bit for each partition */
    rlr_pending_request_t *first; /* not yet sent */
    rlr_pending_request_t *last;
    rlr_pending_request_t *unused;
    rlr_pending_request_t pending_requests[PENDING_MAX];
};

static bool make_condition(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    bool made = pthread_condattr_init(&attributes) == 0
        && pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0
        && pthread_cond_init(condition, &attributes) == 0;

    pthread_condattr_destroy(&attributes);
    return made;
}

rlr_queue_t *rlr_queue_make(const rlr_wait_slots_t *slots, uint32_t timeout_us,
                            uint32_t brief_ms, apr_pool_t *pool)
{
    rlr_queue_t *queue = apr_pcalloc(pool, sizeof(*queue));
    bool made = pthread_mutex_init(&queue->lock, NULL) == 0
        && make_condition(&queue->has_pending);

    queue->slots = *slots;
    queue->timeout_us = timeout_us;
    queue->brief_ms = brief_ms;
    for (int i = 0; made && i < PENDING_MAX; i++) {
        made = make_condition(&queue->pending_requests[i].done);
        queue->pending_requests[i].next = queue->unused;
        queue->unused = &queue->pending_requests[i];
    }
    return made ? queue : NULL;
}

static uint64_t get_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SECOND_US + (uint64_t)now.tv_nsec / 1000;
}

static uint64_t get_ms(void)
{
    return get_us() / 1000;
}

static struct timespec to_time(uint64_t us)
{
    return (struct timespec){.tv_sec = (time_t)(us / SECOND_US),
                             .tv_nsec = (long)(us % SECOND_US) * 1000};
}

/* ---- Pending requests ---- */

static rlr_pending_request_t *find_locked(rlr_queue_t *queue,
                                          const unsigned char *key,
                                          rlr_limit_t limit)
{
    rlr_pending_request_t *pending = queue->first;

    /* As many as threads that wait, and refills. A reset has no limit, so that
     * no request joins it. */
    while (pending != NULL
           && (!rlr_limit_equal(pending->limit, limit)
               || memcmp(pending->key, key, sizeof(pending->key)) != 0)) {
        pending = pending->next;
    }
    return pending;
}

/* NULL: all are in use. */
static rlr_pending_request_t *add_locked(rlr_queue_t *queue,
                                         const unsigned char *key,
                                         rlr_limit_t limit, bool is_reset)
{
    rlr_pending_request_t *pending = queue->unused;

    if (pending == NULL || queue->is_stopped) {
        return NULL;
    }
    queue->unused = pending->next;
    memcpy(pending->key, key, sizeof(pending->key));
    pending->limit = limit;
    pending->is_reset = is_reset;
    pending->waiting = 0;
    pending->admitted = 0;
    pending->threads = 0;
    pending->is_sent = false;
    pending->is_done = false;
    pending->is_decided = false;
    if (queue->unanswered++ == 0) {
        queue->since_ms = get_ms();
    }
    pending->next = NULL;
    if (queue->first == NULL) {
        queue->first = pending;
    }
    else {
        queue->last->next = pending;
    }
    queue->last = pending;
    pthread_cond_signal(&queue->has_pending);
    return pending;
}

static void release_locked(rlr_queue_t *queue, rlr_pending_request_t *pending)
{
    if (pending->threads == 0 && pending->is_done) {
        pending->next = queue->unused;
        queue->unused = pending;
    }
}

/* Waits until end_us, but for call_us at most from when the pending request is
 * sent, and until then for as long from from_us. */
static void wait_locked(rlr_queue_t *queue, rlr_pending_request_t *pending,
                        uint64_t from_us, uint32_t call_us, uint64_t end_us)
{
    int rv = 0;

    pending->threads++;
    while (!pending->is_done && rv == 0) {
        bool was_sent = pending->is_sent;
        uint64_t until_us = (was_sent ? pending->sent_us : from_us) + call_us;
        struct timespec until = to_time(until_us < end_us ? until_us : end_us);

        rv = pthread_cond_timedwait(&pending->done, &queue->lock, &until);
        if (pending->is_sent != was_sent) {
            rv = 0;
        }
    }
    pending->threads--;
}

/* Waits for limit_us. */
static void wait_fully_locked(rlr_queue_t *queue,
                              rlr_pending_request_t *pending, uint64_t from_us,
                              uint32_t limit_us)
{
    wait_locked(queue, pending, from_us, limit_us, from_us + limit_us);
}

bool rlr_queue_is_away(const rlr_queue_t *queue, const unsigned char *key)
{
    uint32_t away = atomic_load_explicit(&queue->away, memory_order_relaxed);

    return (away >> rlr_shared_partition_of(key) & 1) != 0;
}

static bool take_slot(rlr_wait_slot_hold_t *hold, const rlr_queue_t *queue,
                      uint32_t client)
{
    uint64_t now_ms = get_ms();

    return rlr_wait_slot_take(hold, &queue->slots, client, now_ms,
                              now_ms + queue->timeout_us / 1000 + SCHEDULE_MS);
}

/* Whether a request may wait without a slot. To join a pending request costs
 * the store nothing. */
static bool may_be_brief_locked(rlr_queue_t *queue,
                                const rlr_pending_request_t *pending,
                                uint32_t client)
{
    uint64_t now_ms = get_ms();

    if (queue->unanswered > 0 && now_ms >= queue->since_ms + queue->brief_ms) {
        rlr_wait_slot_set_slow(&queue->slots, true, now_ms);
    }
    return queue->brief_ms > 0 && !rlr_wait_slot_is_slow(&queue->slots, now_ms)
        && (pending != NULL
            || rlr_wait_slot_may_be_brief(&queue->slots, client, now_ms));
}

/* The rest of a wait that began without a slot needs one. */
static void wait_briefly_locked(rlr_queue_t *queue,
                                rlr_pending_request_t *pending, uint32_t client)
{
    uint64_t from_us = get_us();
    uint64_t end_us = from_us + queue->timeout_us;
    rlr_wait_slot_hold_t hold;

    wait_locked(queue, pending, from_us, queue->brief_ms * 1000, end_us);
    if (!pending->is_done && get_us() < end_us
        && take_slot(&hold, queue, client)) {
        wait_fully_locked(queue, pending, from_us, queue->timeout_us);
        rlr_wait_slot_return(&hold);
    }
}

/* The result for one that has waited. */
static rlr_queue_result_t take_result_locked(rlr_queue_t *queue,
                                             rlr_pending_request_t *pending)
{
    rlr_queue_result_t result = RLR_QUEUE_UNDECIDED;

    if (!pending->is_done) {
        /* Not sent yet: nothing is requested for it. */
        pending->waiting -= pending->is_sent ? 0 : 1;
        result = RLR_QUEUE_LATE;
    }
    else if (pending->is_decided) {
        result = pending->admitted > 0 ? RLR_QUEUE_ADMITTED : RLR_QUEUE_REFUSED;
        pending->admitted -= pending->admitted > 0;
    }
    release_locked(queue, pending);
    return result;
}

/* Asks for one admission, or joins those that have asked, and waits. */
static rlr_queue_result_t request_locked(rlr_queue_t *queue,
                                         const unsigned char *key,
                                         rlr_limit_t limit, uint32_t client)
{
    rlr_pending_request_t *pending = find_locked(queue, key, limit);
    bool is_brief = may_be_brief_locked(queue, pending, client);
    rlr_wait_slot_hold_t hold = {NULL, 0};
    bool may_wait = is_brief || take_slot(&hold, queue, client);

    if (pending == NULL && may_wait) {
        pending = add_locked(queue, key, limit, false);
    }
    may_wait = may_wait && pending != NULL;
    if (may_wait) {
        pending->waiting++;
        if (is_brief) {
            wait_briefly_locked(queue, pending, client);
        }
        else {
            wait_fully_locked(queue, pending, get_us(), queue->timeout_us);
        }
    }
    rlr_wait_slot_return(&hold);
    return may_wait ? take_result_locked(queue, pending) : RLR_QUEUE_BUSY;
}

rlr_queue_result_t rlr_queue_request(rlr_queue_t *queue,
                                     const unsigned char *key,
                                     rlr_limit_t limit, uint32_t client)
{
    rlr_queue_result_t result = RLR_QUEUE_UNDECIDED;

    pthread_mutex_lock(&queue->lock);
    if (!rlr_queue_is_away(queue, key) && !queue->is_stopped) {
        result = request_locked(queue, key, limit, client);
    }
    pthread_mutex_unlock(&queue->lock);
    return result;
}

void rlr_queue_refill(rlr_queue_t *queue, const unsigned char *key,
                      rlr_limit_t limit)
{
    pthread_mutex_lock(&queue->lock);
    if (!rlr_queue_is_away(queue, key)
        && find_locked(queue, key, limit) == NULL) {
        add_locked(queue, key, limit, false);
    }
    pthread_mutex_unlock(&queue->lock);
}

bool rlr_queue_reset(rlr_queue_t *queue, const unsigned char *key)
{
    static const rlr_limit_t none = {0, 0};
    rlr_pending_request_t *pending;
    bool is_removed = false;

    pthread_mutex_lock(&queue->lock);
    pending = add_locked(queue, key, none, true);
    if (pending != NULL) {
        wait_fully_locked(queue, pending, get_us(), SECOND_US);
        is_removed = pending->is_done && pending->is_decided;
        release_locked(queue, pending);
    }
    pthread_mutex_unlock(&queue->lock);
    return is_removed;
}

/* ---- The worker ---- */

void rlr_queue_note_answer(rlr_queue_t *queue, uint64_t took_ms)
{
    rlr_wait_slot_set_slow(&queue->slots, took_ms >= queue->brief_ms, get_ms());
}

rlr_pending_request_t *rlr_queue_take(rlr_queue_t *queue, uint32_t wait_us)
{
    struct timespec until = to_time(get_us() + wait_us);
    rlr_pending_request_t *list;
    uint64_t now_us;
    int rv = 0;

    pthread_mutex_lock(&queue->lock);
    while (queue->first == NULL && !queue->is_stopped && rv == 0) {
        rv = pthread_cond_timedwait(&queue->has_pending, &queue->lock, &until);
    }
    list = queue->first;
    queue->first = NULL;
    now_us = get_us();
    if (list != NULL) {
        queue->since_ms = now_us / 1000;
    }
    for (rlr_pending_request_t *at = list; at != NULL; at = at->next) {
        at->is_sent = true;
        at->sent_us = now_us;
    }
    pthread_mutex_unlock(&queue->lock);
    return list;
}

void rlr_queue_finish(rlr_queue_t *queue, rlr_pending_request_t *pending,
                      bool is_decided, uint32_t admitted)
{
    uint64_t took_ms;

    pthread_mutex_lock(&queue->lock);
    queue->since_ms = get_ms();
    queue->unanswered--;
    took_ms = queue->since_ms - pending->sent_us / 1000;
    /* In time without a decision: the store may not have been asked. */
    if (is_decided || took_ms >= queue->brief_ms) {
        rlr_queue_note_answer(queue, took_ms);
    }
    pending->is_done = true;
    pending->is_decided = is_decided;
    pending->admitted = admitted;
    pthread_cond_broadcast(&pending->done);
    release_locked(queue, pending);
    pthread_mutex_unlock(&queue->lock);
}

void rlr_queue_drop(rlr_queue_t *queue, rlr_pending_request_t *list)
{
    while (list != NULL) {
        rlr_pending_request_t *next = list->next;

        rlr_queue_finish(queue, list, false, 0);
        list = next;
    }
}

void rlr_queue_set_away(rlr_queue_t *queue, uint32_t partitions)
{
    pthread_mutex_lock(&queue->lock);
    queue->away = partitions;
    pthread_mutex_unlock(&queue->lock);
}

void rlr_queue_stop(rlr_queue_t *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->is_stopped = true;
    pthread_cond_signal(&queue->has_pending);
    pthread_mutex_unlock(&queue->lock);
}

bool rlr_queue_is_stopped(rlr_queue_t *queue)
{
    bool is_stopped;

    pthread_mutex_lock(&queue->lock);
    is_stopped = queue->is_stopped;
    pthread_mutex_unlock(&queue->lock);
    return is_stopped;
}
