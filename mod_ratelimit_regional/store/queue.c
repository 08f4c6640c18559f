/* SPDX-License-Identifier: Apache-2.0 */
/* One lock for all; a condition for the worker and one per question. */
#include "queue.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#define QUESTIONS 512
#define RESET_US  1000000U

struct rlr_queue_t {
    pthread_mutex_t lock;
    pthread_cond_t asked;
    uint32_t max_waiting;
    uint32_t waiting;
    uint32_t timeout_us;
    bool is_stopped;
    bool is_away;
    rlr_question_t *first; /* not yet sent */
    rlr_question_t *last;
    rlr_question_t *unused;
    rlr_question_t questions[QUESTIONS];
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

rlr_queue_t *rlr_queue_make(uint32_t max_waiting, uint32_t timeout_us,
                            apr_pool_t *pool)
{
    rlr_queue_t *queue = apr_pcalloc(pool, sizeof(*queue));
    bool made = pthread_mutex_init(&queue->lock, NULL) == 0
        && make_condition(&queue->asked);

    queue->max_waiting = max_waiting;
    queue->timeout_us = timeout_us;
    for (int i = 0; made && i < QUESTIONS; i++) {
        made = make_condition(&queue->questions[i].done);
        queue->questions[i].next = queue->unused;
        queue->unused = &queue->questions[i];
    }
    return made ? queue : NULL;
}

static struct timespec get_time_after(uint32_t us)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)(us % 1000000) * 1000;
    until.tv_sec += us / 1000000 + until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    return until;
}

/* ---- Questions ---- */

static rlr_question_t *find_locked(rlr_queue_t *queue, const unsigned char *key,
                                   rlr_limit_t limit)
{
    rlr_question_t *question = queue->first;

    /* As many as threads that wait, and refills. */
    while (question != NULL
           && (question->is_reset || !rlr_limit_equal(question->limit, limit)
               || memcmp(question->key, key, sizeof(question->key)) != 0)) {
        question = question->next;
    }
    return question;
}

/* NULL: all are in use. */
static rlr_question_t *ask_locked(rlr_queue_t *queue, const unsigned char *key,
                                  rlr_limit_t limit, bool is_reset)
{
    rlr_question_t *question = queue->unused;

    if (question == NULL || queue->is_stopped) {
        return NULL;
    }
    queue->unused = question->next;
    memcpy(question->key, key, sizeof(question->key));
    question->limit = limit;
    question->is_reset = is_reset;
    question->waiting = 0;
    question->admitted = 0;
    question->threads = 0;
    question->is_sent = false;
    question->is_done = false;
    question->is_decided = false;
    question->next = NULL;
    if (queue->first == NULL) {
        queue->first = question;
    }
    else {
        queue->last->next = question;
    }
    queue->last = question;
    pthread_cond_signal(&queue->asked);
    return question;
}

static void release_locked(rlr_queue_t *queue, rlr_question_t *question)
{
    if (question->threads == 0 && question->is_done) {
        question->next = queue->unused;
        queue->unused = question;
    }
}

static void wait_locked(rlr_queue_t *queue, rlr_question_t *question,
                        uint32_t timeout_us)
{
    struct timespec until = get_time_after(timeout_us);
    int rv = 0;

    question->threads++;
    queue->waiting++;
    while (!question->is_done && rv == 0) {
        rv = pthread_cond_timedwait(&question->done, &queue->lock, &until);
    }
    queue->waiting--;
    question->threads--;
}

rlr_queue_result_t rlr_queue_request(rlr_queue_t *queue,
                                     const unsigned char *key,
                                     rlr_limit_t limit)
{
    rlr_queue_result_t result = RLR_QUEUE_UNDECIDED;
    rlr_question_t *question = NULL;

    pthread_mutex_lock(&queue->lock);
    if (queue->waiting < queue->max_waiting && !queue->is_away) {
        question = find_locked(queue, key, limit);
        if (question == NULL) {
            question = ask_locked(queue, key, limit, false);
        }
    }
    if (question != NULL) {
        question->waiting++;
        wait_locked(queue, question, queue->timeout_us);
        if (!question->is_done) {
            /* Not sent yet: nothing is requested for it. */
            question->waiting -= question->is_sent ? 0 : 1;
        }
        else if (question->is_decided) {
            result = question->admitted > 0 ? RLR_QUEUE_ADMITTED
                                            : RLR_QUEUE_REFUSED;
            question->admitted -= question->admitted > 0;
        }
        release_locked(queue, question);
    }
    pthread_mutex_unlock(&queue->lock);
    return result;
}

void rlr_queue_refill(rlr_queue_t *queue, const unsigned char *key,
                      rlr_limit_t limit)
{
    pthread_mutex_lock(&queue->lock);
    if (find_locked(queue, key, limit) == NULL) {
        ask_locked(queue, key, limit, false);
    }
    pthread_mutex_unlock(&queue->lock);
}

bool rlr_queue_reset(rlr_queue_t *queue, const unsigned char *key)
{
    static const rlr_limit_t none = {0, 0};
    rlr_question_t *question;
    bool is_removed = false;

    pthread_mutex_lock(&queue->lock);
    question = ask_locked(queue, key, none, true);
    if (question != NULL) {
        wait_locked(queue, question, RESET_US);
        is_removed = question->is_done && question->is_decided;
        release_locked(queue, question);
    }
    pthread_mutex_unlock(&queue->lock);
    return is_removed;
}

/* ---- The worker ---- */

rlr_question_t *rlr_queue_take(rlr_queue_t *queue, uint32_t wait_us)
{
    struct timespec until = get_time_after(wait_us);
    rlr_question_t *list;
    int rv = 0;

    pthread_mutex_lock(&queue->lock);
    while (queue->first == NULL && !queue->is_stopped && rv == 0) {
        rv = pthread_cond_timedwait(&queue->asked, &queue->lock, &until);
    }
    list = queue->first;
    queue->first = NULL;
    for (rlr_question_t *at = list; at != NULL; at = at->next) {
        at->is_sent = true;
    }
    pthread_mutex_unlock(&queue->lock);
    return list;
}

void rlr_queue_finish(rlr_queue_t *queue, rlr_question_t *question,
                      bool is_decided, uint32_t admitted)
{
    pthread_mutex_lock(&queue->lock);
    question->is_done = true;
    question->is_decided = is_decided;
    question->admitted = admitted;
    pthread_cond_broadcast(&question->done);
    release_locked(queue, question);
    pthread_mutex_unlock(&queue->lock);
}

void rlr_queue_set_away(rlr_queue_t *queue, bool is_away)
{
    pthread_mutex_lock(&queue->lock);
    queue->is_away = is_away;
    pthread_mutex_unlock(&queue->lock);
}

void rlr_queue_stop(rlr_queue_t *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->is_stopped = true;
    pthread_cond_signal(&queue->asked);
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
