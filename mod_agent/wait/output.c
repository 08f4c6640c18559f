/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An output filter that never blocks on the client.
 *
 * httpd's core output filter blocks on the socket at a FLUSH bucket, and when
 * it has set aside more than FlushMaxThreshold. Filters before it (mod_ssl,
 * mod_deflate) need the FLUSH to release their data. So this filter, after
 * them, removes it, and passes small pieces to the core filter.
 */
#include "output.h"

#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <apr_portable.h>
#include <http_connection.h>
#include <http_core.h>
#include <mpm_common.h>
#include <util_filter.h>

#include "../private.h"
#include "budget.h"

#define FILTER_NAME "AGENT_OUTPUT"

/* Well below the 64 KB of FlushMaxThreshold. */
#define PIECE_BYTES (32 * 1024)
/* Fits into any send buffer. */
#define SMALL_BYTES 4096
/*
 * A socket is writable while it has fewer unsent bytes. Otherwise Linux reports
 * it only when a third of the send buffer is free, which grows to megabytes: a
 * client that reads slowly but steadily would appear idle for Timeout.
 */
#define UNSENT_BYTES (128 * 1024)
/* Size of a held bucket; less data is copied before it is counted. */
#define COPY_BYTES (64 * 1024)
/* Free memory that a connection keeps after a large piece of output; with
 * MaxMemFree instead, a hundred connections would keep more than the rest of a
 * child needs. */
#define KEPT_BYTES (8 * 1024)

struct agent_output_t {
    ap_filter_t *filter;
    bool holds;
    apr_bucket_brigade *held;
    /* Being passed to the core filter. */
    apr_bucket_brigade *piece;
    /* Bytes of a response whose text is freed with its request; 0 = none. */
    apr_size_t charged;
    /* Size of held when it was last counted. */
    apr_size_t counted;
    /* Counts the larger of held and charged. */
    agent_budget_share_t *share;
};

static ap_filter_rec_t *filter_record;

/* Set in child_init. */
static agent_budget_t *child_budget;

/* True when there was a FLUSH. */
static bool remove_flushes(apr_bucket_brigade *bb)
{
    apr_bucket *bucket = APR_BRIGADE_FIRST(bb);
    bool found = false;

    while (bucket != APR_BRIGADE_SENTINEL(bb)) {
        apr_bucket *next = APR_BUCKET_NEXT(bucket);

        if (APR_BUCKET_IS_FLUSH(bucket)) {
            apr_bucket_delete(bucket);
            found = true;
        }
        bucket = next;
    }
    return found;
}

/* True when the piece is so small, and the socket so empty, that a write cannot
 * block. */
static bool fits_socket(conn_rec *c, apr_bucket_brigade *piece)
{
    apr_off_t length = 0;
    apr_os_sock_t fd;
    int queued = 1;

    return apr_brigade_length(piece, 0, &length) == APR_SUCCESS && length >= 0
        && length <= SMALL_BYTES
        && apr_os_sock_get(&fd, ap_get_conn_socket(c)) == APR_SUCCESS
        && ioctl(fd, SIOCOUTQ, &queued) == 0 && queued == 0;
}

static void pass_piece(agent_output_t *output, conn_rec *c)
{
    apr_bucket *end;

    apr_brigade_partition(output->held, PIECE_BYTES, &end);
    while (APR_BRIGADE_FIRST(output->held) != end) {
        apr_bucket *bucket = APR_BRIGADE_FIRST(output->held);

        APR_BUCKET_REMOVE(bucket);
        APR_BRIGADE_INSERT_TAIL(output->piece, bucket);
    }
    /* Otherwise the core filter sets it aside in a pool of its own. */
    if (fits_socket(c, output->piece)) {
        APR_BRIGADE_INSERT_TAIL(output->piece,
                                apr_bucket_flush_create(c->bucket_alloc));
    }
    ap_pass_brigade(output->filter->next, output->piece);
    apr_brigade_cleanup(output->piece);
}

/* The core filter writes the data it has set aside, as for the MPM. */
static void write_set_aside(const agent_output_t *output)
{
    ap_filter_t *last = output->filter;

    while (last->next != NULL) {
        last = last->next;
    }
    last->frec->filter_func.out_func(last, NULL);
}

static apr_size_t count_bytes(apr_bucket_brigade *bb)
{
    apr_off_t length = 0;

    apr_brigade_length(bb, 0, &length);
    return length > 0 ? (apr_size_t)length : 0;
}

/* This thread uses the held data again. Sets c->aborted if it was dropped while
 * the MPM had the connection. */
static void resume(const agent_output_t *output, conn_rec *c)
{
    if (!agent_budget_share_resume(output->share)) {
        apr_interval_time_t idle;
        apr_size_t bytes = agent_budget_share_lost(output->share, &idle);

        c->aborted = 1;
        ap_log_cerror(APLOG_MARK, APLOG_INFO, 0, c,
                      AGENT_LOGNO(0202) "connection closed: %" APR_SIZE_T_FMT
                                        " bytes are unsent, the client has "
                                        "read none of them for %d ms, and the "
                                        "unsent output of all clients exceeds "
                                        "the limit of this child",
                      bytes, (int)apr_time_as_msec(idle));
    }
}

static void drop_held(void *output)
{
    apr_brigade_cleanup(((agent_output_t *)output)->held);
}

void agent_output_drop(agent_output_t *output, conn_rec *c)
{
    resume(output, c);
    drop_held(output);
    agent_budget_share_set(output->share, 0, apr_time_now());
}

static void count(agent_output_t *output)
{
    apr_size_t held = count_bytes(output->held);

    /* Also while the share counts the whole text. */
    if (held < output->counted) {
        agent_budget_share_progress(output->share, apr_time_now());
    }
    output->counted = held;
    agent_budget_share_set(output->share,
                           held > output->charged ? held : output->charged,
                           apr_time_now());
}

void agent_output_charge(agent_output_t *output, apr_size_t bytes)
{
    output->charged = bytes;
    count(output);
}

void agent_output_wait(const agent_output_t *output,
                       const agent_client_socket_t *client)
{
    agent_budget_share_wait(output->share, client, apr_time_now());
}

bool agent_output_send(agent_output_t *output, conn_rec *c)
{
    resume(output, c);
    if (!c->aborted && c->data_in_output_filters) {
        write_set_aside(output);
    }
    while (!c->aborted && !c->data_in_output_filters
           && !APR_BRIGADE_EMPTY(output->held)) {
        pass_piece(output, c);
        write_set_aside(output);
    }
    if (c->aborted) {
        drop_held(output);
    }
    count(output);
    return !c->aborted
        && (c->data_in_output_filters || !APR_BRIGADE_EMPTY(output->held));
}

/* A bucket is freed as a whole: a large one would stay in memory until its last
 * byte is sent. */
static void split_texts(apr_bucket_brigade *bb)
{
    apr_bucket *bucket;

    for (bucket = APR_BRIGADE_FIRST(bb); bucket != APR_BRIGADE_SENTINEL(bb);
         bucket = APR_BUCKET_NEXT(bucket)) {
        if (APR_BUCKET_IS_TRANSIENT(bucket) && bucket->length > COPY_BYTES) {
            apr_bucket_split(bucket, COPY_BYTES);
        }
    }
}

static void limit_kept(conn_rec *c, apr_size_t bytes)
{
    apr_allocator_max_free_set(apr_pool_allocator_get(c->pool), bytes);
}

/* Copies data that the socket did not accept and that the request is about to
 * free. More than COPY_BYTES are charged to the budget first, which makes room
 * by evictions before the copy is made. */
static apr_status_t copy_rest(agent_output_t *output, ap_filter_t *filter)
{
    apr_size_t bytes = count_bytes(output->held);

    if (bytes > COPY_BYTES) {
        agent_budget_share_set(output->share, bytes, apr_time_now());
    }
    split_texts(output->held);
    APR_BRIGADE_CONCAT(output->piece, output->held);
    return ap_save_brigade(filter, &output->held, &output->piece,
                           filter->c->pool);
}

static apr_status_t filter_output(ap_filter_t *filter, apr_bucket_brigade *bb)
{
    agent_output_t *output = filter->ctx;
    apr_status_t rv;
    bool flushes;

    resume(output, filter->c);
    if (!output->holds) {
        APR_BRIGADE_PREPEND(bb, output->held);
        agent_budget_share_set(output->share, 0, apr_time_now());
        return ap_pass_brigade(filter->next, bb);
    }
    if (count_bytes(bb) > COPY_BYTES) {
        limit_kept(filter->c, KEPT_BYTES);
    }
    flushes = remove_flushes(bb);
    APR_BRIGADE_CONCAT(output->held, bb);
    if (flushes) {
        agent_output_send(output, filter->c);
    }
    rv = copy_rest(output, filter);
    return filter->c->aborted ? APR_ECONNABORTED : rv;
}

void agent_output_register(void)
{
    filter_record = ap_register_output_filter(FILTER_NAME, filter_output, NULL,
                                              AP_FTYPE_NETWORK - 1);
}

apr_status_t agent_output_start(apr_size_t budget_bytes, apr_pool_t *pool)
{
    return agent_budget_create(&child_budget, budget_bytes, pool);
}

apr_size_t agent_output_room(void)
{
    return agent_budget_room(child_budget);
}

/* Best effort: sockets of other protocols do not have this option. */
static void wake_early(conn_rec *c)
{
    const int unsent = UNSENT_BYTES;
    apr_os_sock_t fd;

    if (apr_os_sock_get(&fd, ap_get_conn_socket(c)) == APR_SUCCESS) {
        (void)!setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent,
                          sizeof(unsent));
    }
}

agent_output_t *agent_output_add(conn_rec *c)
{
    agent_output_t *output = apr_pcalloc(c->pool, sizeof(*output));
    const agent_budget_eviction_t eviction = {drop_held, output, SHUT_RDWR};

    wake_early(c);
    output->held = apr_brigade_create(c->pool, c->bucket_alloc);
    output->piece = apr_brigade_create(c->pool, c->bucket_alloc);
    output->share = agent_budget_share_add(child_budget, &eviction, c->pool);
    output->filter = ap_add_output_filter_handle(filter_record, output, NULL,
                                                 c);
    /* An earlier connection may have used the same memory. */
    limit_kept(c, ap_max_mem_free);
    return output;
}

void agent_output_set_owner(const agent_output_t *output,
                            const char *deployment)
{
    agent_budget_share_set_owner(output->share, deployment);
}

void agent_output_hold(agent_output_t *output, bool holds)
{
    output->holds = holds;
}
