/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of refused requests; see unread.h. */
#include "unread.h"

#include <apr_buckets.h>
#include <http_protocol.h>
#include <util_filter.h>

#include "../core/clock.h"
#include "../core/lock.h"
#include "../wait/client_address.h"

#define FILTER_NAME "AGENT_UNREAD_BODY"

/* A client that is silent for this time has stopped sending. */
#define SILENT_TIME apr_time_from_sec(1)
#define MOST_TIME   apr_time_from_sec(10)
/* Most clients stop once they have read the response. So the first pauses are
 * short, since their next request needs the slot. */
#define FIRST_PAUSE apr_time_from_msec(1)
#define MOST_PAUSE  apr_time_from_msec(20)
/* Somewhat more than the highest AgentMaxBody. */
#define MOST_BYTES ((apr_off_t)8 * 1024 * 1024)
#define READ_BYTES ((apr_off_t)64 * 1024)

#define MOST_PER_ADDRESS 2

/* Held by a thread that discards a body. */
typedef struct slot_t {
    /* The client's; NULL: the slot is free. */
    const conn_rec *connection;
    apr_uint64_t address;
} slot_t;

typedef struct slots_t {
    agent_lock_t *lock;
    bool (*is_child_ending)(void);
    int count;
    slot_t *all;
} slots_t;

static ap_filter_rec_t *filter_record;

/* Set in child_init. */
static slots_t *own_slots;

/* ---- slots ---- */

/* At most one slot for a connection: mod_http2 executes only a few of its
 * requests at a time, and the others wait for these. */
static slot_t *find_slot_locked(const conn_rec *connection,
                                apr_uint64_t address)
{
    slot_t *found = NULL;
    int of_address = 0;

    for (int i = 0; i < own_slots->count; i++) {
        slot_t *slot = &own_slots->all[i];

        if (slot->connection == connection) {
            return NULL;
        }
        if (slot->connection == NULL) {
            found = slot;
        }
        else if (slot->address == address) {
            of_address++;
        }
    }
    return of_address < MOST_PER_ADDRESS ? found : NULL;
}

/* NULL: there is none for this client. */
static slot_t *take_slot(const request_rec *r)
{
    const conn_rec *connection = r->connection->master;
    apr_uint64_t address = agent_client_address_number(r->useragent_addr);
    slot_t *slot;

    agent_lock_take(own_slots->lock);
    slot = find_slot_locked(connection, address);
    if (slot != NULL) {
        *slot = (slot_t){.connection = connection, .address = address};
    }
    agent_lock_release(own_slots->lock);
    return slot;
}

static void return_slot(slot_t *slot)
{
    agent_lock_take(own_slots->lock);
    slot->connection = NULL;
    agent_lock_release(own_slots->lock);
}

/* ---- discarding ---- */

/* APR_SUCCESS: *left is smaller; APR_EAGAIN: nothing has arrived; APR_EOF: the
 * end of the body. */
static apr_status_t discard_piece(apr_off_t *left, request_rec *r,
                                  apr_bucket_brigade *piece)
{
    apr_off_t size = 0;
    apr_status_t rv = ap_get_brigade(r->input_filters, piece, AP_MODE_READBYTES,
                                     APR_NONBLOCK_READ, READ_BYTES);

    if (rv == APR_SUCCESS) {
        rv = apr_brigade_length(piece, 1, &size);
    }
    if (rv == APR_SUCCESS && size == 0) {
        rv = APR_EAGAIN;
    }
    if (!APR_BRIGADE_EMPTY(piece)
        && APR_BUCKET_IS_EOS(APR_BRIGADE_LAST(piece))) {
        rv = APR_EOF;
    }
    apr_brigade_cleanup(piece);
    *left -= size;
    return rv;
}

/* Twice as long each time. */
static void pause_longer(apr_interval_time_t *pause)
{
    apr_sleep(*pause);
    *pause = *pause * 2 < MOST_PAUSE ? *pause * 2 : MOST_PAUSE;
}

static void discard(request_rec *r)
{
    apr_bucket_brigade *piece = apr_brigade_create(r->pool,
                                                   r->connection->bucket_alloc);
    apr_time_t now = agent_clock_now();
    apr_time_t until = now + MOST_TIME;
    apr_time_t silent_until = now + SILENT_TIME;
    apr_interval_time_t pause = FIRST_PAUSE;
    apr_off_t left = MOST_BYTES;
    apr_status_t rv = APR_SUCCESS;

    while ((rv == APR_SUCCESS || APR_STATUS_IS_EAGAIN(rv)) && left > 0
           && now < until && now < silent_until
           && !own_slots->is_child_ending()) {
        rv = discard_piece(&left, r, piece);
        if (APR_STATUS_IS_EAGAIN(rv)) {
            pause_longer(&pause);
        }
        now = agent_clock_now();
        if (rv == APR_SUCCESS) {
            silent_until = now + SILENT_TIME;
            pause = FIRST_PAUSE;
        }
    }
    apr_brigade_destroy(piece);
}

/* Without a slot the stream is reset. */
static void discard_bounded(request_rec *r)
{
    slot_t *slot = own_slots != NULL ? take_slot(r) : NULL;

    if (slot != NULL) {
        discard(r);
        return_slot(slot);
    }
}

/* ---- the filter ---- */

static apr_status_t pass_response(ap_filter_t *filter, apr_bucket_brigade *out)
{
    apr_bucket_brigade *end;
    apr_status_t rv;

    if (APR_BRIGADE_EMPTY(out) || !APR_BUCKET_IS_EOS(APR_BRIGADE_LAST(out))) {
        return ap_pass_brigade(filter->next, out);
    }
    end = apr_brigade_split_ex(out, APR_BRIGADE_LAST(out), NULL);
    APR_BRIGADE_INSERT_TAIL(
        out, apr_bucket_flush_create(filter->r->connection->bucket_alloc));
    rv = ap_pass_brigade(filter->next, out);
    if (rv == APR_SUCCESS) {
        discard_bounded(filter->r);
    }
    ap_remove_output_filter(filter);
    return rv == APR_SUCCESS ? ap_pass_brigade(filter->next, end) : rv;
}

void agent_unread_register(void)
{
    /* A protocol filter, since errors that httpd generates pass only these. */
    filter_record = ap_register_output_filter(FILTER_NAME, pass_response, NULL,
                                              AP_FTYPE_PROTOCOL);
}

apr_status_t agent_unread_start(int slots, bool (*is_child_ending)(void),
                                apr_pool_t *pool)
{
    slots_t *created = apr_pcalloc(pool, sizeof(*created));
    apr_status_t rv = agent_lock_create(&created->lock, pool);

    created->is_child_ending = is_child_ending;
    created->count = slots;
    created->all = apr_pcalloc(pool, (apr_size_t)slots * sizeof(slot_t));
    if (rv == APR_SUCCESS) {
        own_slots = created;
    }
    return rv;
}

static ap_filter_t *find_filter(const request_rec *r)
{
    ap_filter_t *filter = r->output_filters;

    while (filter != NULL && filter->frec != filter_record) {
        filter = filter->next;
    }
    return filter;
}

/* denied: the request, if another line may admit it; else NULL. */
static void add_filter(request_rec *r, request_rec *denied)
{
    /* A client that waits for 100 Continue sends nothing. */
    if (r->connection->master != NULL && !r->expecting_100) {
        ap_add_output_filter_handle(filter_record, denied, r, r->connection);
    }
}

/* A subrequest has no body (httpd removes its headers), and a filter of its own
 * must not stay among those that it shares with its request.
 *
 * A redirect to an ErrorDocument is another request, with the filters of the
 * first: a line that denies the document must not let another one, which admits
 * it, remove the filter of the refusal. */
void agent_unread_deny(request_rec *r)
{
    if (r->main == NULL && find_filter(r) == NULL) {
        add_filter(r, r);
    }
}

void agent_unread_admit(request_rec *r)
{
    ap_filter_t *filter = find_filter(r);

    if (filter != NULL && filter->ctx == r) {
        ap_remove_output_filter(filter);
    }
}

void agent_unread_leave(request_rec *r)
{
    ap_filter_t *filter = find_filter(r);

    /* Before the next request httpd would read it, in a thread. */
    r->connection->keepalive = AP_CONN_CLOSE;
    if (filter != NULL) {
        filter->ctx = NULL;
    }
    else {
        add_filter(r, NULL);
    }
}
