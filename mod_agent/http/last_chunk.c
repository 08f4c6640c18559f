/* SPDX-License-Identifier: Apache-2.0 */
/* Holds back the last chunk of a body; see last_chunk.h. RFC 9112, 7.1. */
#include "last_chunk.h"

#include <stdbool.h>

#include <apr_buckets.h>
#include <apr_lib.h>
#include <util_filter.h>

#define FILTER_NAME "AGENT_LAST_CHUNK"

/* Longest line with the size of a chunk, and longest last chunk with its
 * trailers. */
#define KEPT_BYTES (16 * 1024)

/* The kind of the current line, as far as it has arrived. */
typedef enum line_t {
    LINE_BEGINS,
    /* Only zeros so far: the size is 0 unless another digit follows. */
    LINE_ZEROS,
    LINE_LAST_CHUNK,
    LINE_OTHER
} line_t;

typedef struct last_chunk_t {
    /* Lines that are held back; the last one may be incomplete. */
    apr_bucket_brigade *kept;
    apr_bucket_brigade *piece;
    apr_size_t kept_bytes;
    line_t line;
    /* After the last chunk: lines are trailers, an empty one ends them. */
    bool in_trailers;
    /* Bytes of the current trailer, without its line end. */
    apr_size_t trailer_bytes;
    /* The lines held back can be passed on. */
    bool is_whole;
} last_chunk_t;

static ap_filter_rec_t *filter_record;

static line_t read_size(line_t line, char byte)
{
    if (byte == '0' && line <= LINE_ZEROS) {
        return LINE_ZEROS;
    }
    if (line == LINE_ZEROS && !apr_isxdigit(byte)) {
        return LINE_LAST_CHUNK;
    }
    return line == LINE_LAST_CHUNK ? LINE_LAST_CHUNK : LINE_OTHER;
}

static void end_line(last_chunk_t *chunk)
{
    if (chunk->in_trailers) {
        chunk->is_whole = chunk->trailer_bytes == 0;
    }
    else {
        chunk->in_trailers = chunk->line == LINE_LAST_CHUNK;
        chunk->is_whole = !chunk->in_trailers;
    }
    chunk->line = LINE_BEGINS;
    chunk->trailer_bytes = 0;
}

static void read_byte(last_chunk_t *chunk, char byte)
{
    if (chunk->in_trailers) {
        chunk->trailer_bytes += byte != '\r' && byte != '\n';
    }
    else {
        chunk->line = read_size(chunk->line, byte);
    }
    if (byte == '\n') {
        end_line(chunk);
    }
}

/* Reads a piece: a line, or the part of it that has arrived. */
static apr_status_t read_piece(last_chunk_t *chunk)
{
    apr_status_t rv = APR_SUCCESS;

    for (apr_bucket *bucket = APR_BRIGADE_FIRST(chunk->piece);
         rv == APR_SUCCESS && bucket != APR_BRIGADE_SENTINEL(chunk->piece);
         bucket = APR_BUCKET_NEXT(bucket)) {
        const char *text = NULL;
        apr_size_t length = 0;

        if (!APR_BUCKET_IS_METADATA(bucket)) {
            rv = apr_bucket_read(bucket, &text, &length, APR_BLOCK_READ);
        }
        for (apr_size_t i = 0; i < length; i++) {
            read_byte(chunk, text[i]);
        }
        chunk->kept_bytes += length;
    }
    return rv;
}

/* Copies the piece, so that a small one does not keep the buffer it arrived in;
 * a line that is passed on at once is moved. */
static apr_status_t keep_piece(last_chunk_t *chunk)
{
    apr_status_t rv = APR_SUCCESS;

    if (chunk->is_whole && APR_BRIGADE_EMPTY(chunk->kept)) {
        APR_BRIGADE_CONCAT(chunk->kept, chunk->piece);
        return APR_SUCCESS;
    }
    while (rv == APR_SUCCESS && !APR_BRIGADE_EMPTY(chunk->piece)) {
        apr_bucket *bucket = APR_BRIGADE_FIRST(chunk->piece);
        const char *text;
        apr_size_t length;

        if (!APR_BUCKET_IS_METADATA(bucket)
            && apr_bucket_read(bucket, &text, &length, APR_BLOCK_READ)
                == APR_SUCCESS) {
            rv = apr_brigade_write(chunk->kept, NULL, NULL, text, length);
        }
        apr_bucket_delete(bucket);
    }
    return chunk->kept_bytes <= KEPT_BYTES ? rv : APR_EGENERAL;
}

static apr_status_t gather(last_chunk_t *chunk, const ap_filter_t *filter)
{
    while (!chunk->is_whole) {
        apr_status_t rv = ap_get_brigade(filter->next, chunk->piece,
                                         AP_MODE_GETLINE, APR_NONBLOCK_READ, 0);

        if (rv == APR_SUCCESS && APR_BRIGADE_EMPTY(chunk->piece)) {
            rv = APR_EAGAIN;
        }
        if (rv == APR_SUCCESS) {
            rv = read_piece(chunk);
        }
        if (rv == APR_SUCCESS) {
            rv = keep_piece(chunk);
        }
        if (rv != APR_SUCCESS) {
            return rv;
        }
    }
    return APR_SUCCESS;
}

/* Passes data through, and lines one at a time; the last chunk together with
 * its trailers. */
static apr_status_t filter_input(ap_filter_t *filter, apr_bucket_brigade *bb,
                                 ap_input_mode_t mode, apr_read_type_e block,
                                 apr_off_t bytes)
{
    last_chunk_t *chunk = filter->ctx;
    apr_status_t rv;

    if (mode != AP_MODE_GETLINE) {
        return ap_get_brigade(filter->next, bb, mode, block, bytes);
    }
    rv = gather(chunk, filter);
    if (rv != APR_SUCCESS) {
        return rv;
    }
    rv = apr_brigade_split_line(bb, chunk->kept, APR_BLOCK_READ, KEPT_BYTES);
    if (!chunk->in_trailers) {
        chunk->kept_bytes = 0;
        chunk->is_whole = false;
    }
    return rv;
}

void agent_last_chunk_register(void)
{
    filter_record = ap_register_input_filter(FILTER_NAME, filter_input, NULL,
                                             AP_FTYPE_PROTOCOL + 5);
}

void agent_last_chunk_add(request_rec *r)
{
    last_chunk_t *chunk = apr_pcalloc(r->pool, sizeof(*chunk));
    apr_bucket_alloc_t *alloc = r->connection->bucket_alloc;

    chunk->kept = apr_brigade_create(r->pool, alloc);
    chunk->piece = apr_brigade_create(r->pool, alloc);
    ap_add_input_filter_handle(filter_record, chunk, r, r->connection);
}
