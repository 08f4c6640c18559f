/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the shared memory; see segment.h.
 *
 * The parent remembers the mapping in its process pool. Children hold their
 * own reference: when the parent replaces the segment, those of the old
 * configuration finish on the old one.
 */
#include "shm.h"

#include <sys/mman.h>

#include <apr_general.h>
#include <apr_strings.h>

#include "private.h"

/* Names the layout of mapping_t too: another release of the module that the
 * same parent loads at a restart must not misread it. */
#define MAPPING_KEY "mod_ratelimit_regional:mapping:1"

/* Rules come and go between restarts; a segment has places for some more. */
#define SPARE_RULES 64

/* Linux; elsewhere pages come when they are used first. */
#ifndef MAP_POPULATE
#define MAP_POPULATE 0
#endif

/* In the process pool. */
typedef struct mapping_t {
    void *memory;
    size_t size;
    /* What it was made for. */
    uint32_t slots;
} mapping_t;

/* NULL at the first start. */
static mapping_t *find_mapping(apr_pool_t *process_pool)
{
    void *mapping = NULL;

    apr_pool_userdata_get(&mapping, MAPPING_KEY, process_pool);
    return mapping;
}

/* Zeroed memory that children share; logs what fails. All of it is there from
 * the start, so that no request waits for a page of it, or finds none left. */
static apr_status_t map_memory(mapping_t *mapping, uint32_t slots,
                               uint32_t rules, server_rec *server)
{
    apr_status_t rv;

    mapping->slots = slots;
    mapping->size = rlr_table_size(slots, rules);
    mapping->memory = mmap(NULL, mapping->size, PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (mapping->memory != MAP_FAILED) {
        return APR_SUCCESS;
    }
    rv = apr_get_os_error();
    ap_log_error(APLOG_MARK, APLOG_ERR, rv, server,
                 RLR_LOGNO(0107) "RateLimitTable %u: no shared memory (%lu KB)",
                 slots, (unsigned long)(mapping->size / 1024));
    return rv;
}

/* A new segment; secret NULL: a random one. Logs what fails. */
static apr_status_t make_segment(mapping_t *mapping, uint32_t slots, int names,
                                 const unsigned char *secret,
                                 server_rec *server)
{
    unsigned char fresh[RLR_TABLE_SECRET_SIZE];
    uint32_t rules = (uint32_t)names + SPARE_RULES;
    rlr_table_status_t status = RLR_TABLE_OK;
    apr_status_t rv;

    if (rules > RLR_TABLE_RULES_MAX) {
        rules = RLR_TABLE_RULES_MAX;
    }
    rv = map_memory(mapping, slots, rules, server);
    if (rv != APR_SUCCESS) {
        return rv;
    }
    if (secret == NULL) {
        rv = apr_generate_random_bytes(fresh, sizeof(fresh));
        secret = fresh;
    }
    if (rv == APR_SUCCESS) {
        status = rlr_table_create(mapping->memory, mapping->size, slots, rules,
                                  secret);
    }
    if (rv != APR_SUCCESS || status != RLR_TABLE_OK) {
        ap_log_error(APLOG_MARK, APLOG_ERR, rv, server,
                     RLR_LOGNO(0108) "the shared table could not be made "
                                     "(status %d)",
                     (int)status);
        munmap(mapping->memory, mapping->size);
        return APR_EGENERAL;
    }
    return APR_SUCCESS;
}

static rlr_table_status_t attach(rlr_table_t *table, const mapping_t *mapping,
                                 const apr_array_header_t *names,
                                 uint32_t *slots)
{
    return rlr_table_attach(table, mapping->memory, mapping->size,
                            (const char *const *)names->elts,
                            (uint32_t)names->nelts, slots);
}

static apr_status_t attach_new(rlr_table_t *table, const mapping_t *mapping,
                               const apr_array_header_t *names, uint32_t *slots,
                               server_rec *server)
{
    rlr_table_status_t status = attach(table, mapping, names, slots);

    if (status != RLR_TABLE_OK) {
        ap_log_error(APLOG_MARK, APLOG_ERR, 0, server,
                     RLR_LOGNO(0109) "the shared table could not be opened for "
                                     "%d rules (status %d)",
                     names->nelts, (int)status);
        munmap(mapping->memory, mapping->size);
        return APR_EGENERAL;
    }
    return APR_SUCCESS;
}

/* Another size, or more rules than the old one has places for. */
static apr_status_t replace(rlr_table_t *table, mapping_t *mapping,
                            const rlr_table_t *old, uint32_t *slots,
                            const apr_array_header_t *names,
                            uint32_t table_slots, server_rec *server)
{
    mapping_t next;
    rlr_table_status_t status;
    apr_status_t rv = make_segment(&next, table_slots, names->nelts,
                                   rlr_table_secret(old), server);

    if (rv == APR_SUCCESS) {
        rv = attach_new(table, &next, names, slots, server);
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    status = rlr_table_carry_over(table, old, &rlr_clock_monotonic);
    ap_log_error(APLOG_MARK, APLOG_NOTICE, 0, server,
                 RLR_LOGNO(0110) "the shared table was replaced by one of %u "
                                 "places (carry-over: status %d); until old "
                                 "children are gone both count",
                 table_slots, (int)status);
    munmap(mapping->memory, mapping->size);
    *mapping = next;
    return APR_SUCCESS;
}

/* A view of a segment that has no place for the new rules, to copy from. */
static rlr_table_status_t attach_full(rlr_table_t *old,
                                      const mapping_t *mapping)
{
    return rlr_table_attach(old, mapping->memory, mapping->size, NULL, 0, NULL);
}

/* The old one has no place for the new rules. */
static apr_status_t replace_full(rlr_table_t *table, mapping_t *mapping,
                                 const rlr_table_t *old, uint32_t *slots,
                                 const apr_array_header_t *names,
                                 uint32_t table_slots, server_rec *server)
{
    apr_status_t rv = replace(table, mapping, old, slots, names, table_slots,
                              server);

    return rv == APR_SUCCESS || mapping->slots == table_slots
        ? rv
        : replace(table, mapping, old, slots, names, mapping->slots, server);
}

/* The segment from before the restart. A new size that cannot be had leaves
 * the old one in use. */
static apr_status_t reopen(rlr_table_t *table, mapping_t *mapping,
                           uint32_t *slots, const apr_array_header_t *names,
                           uint32_t table_slots, server_rec *server)
{
    rlr_table_status_t status = attach(table, mapping, names, slots);
    rlr_table_t old = *table;

    if (status == RLR_TABLE_OK && mapping->slots == table_slots) {
        return APR_SUCCESS;
    }
    if (status == RLR_TABLE_OK) {
        if (replace(table, mapping, &old, slots, names, table_slots, server)
            == APR_SUCCESS) {
            return APR_SUCCESS;
        }
        return attach(table, mapping, names, slots) == RLR_TABLE_OK
            ? APR_SUCCESS
            : APR_EGENERAL;
    }
    if (status != RLR_TABLE_RULES_FULL
        || attach_full(&old, mapping) != RLR_TABLE_OK) {
        ap_log_error(APLOG_MARK, APLOG_WARNING, 0, server,
                     RLR_LOGNO(0111) "the shared table of another release is "
                                     "left: counters begin anew");
        munmap(mapping->memory, mapping->size);
        return APR_ENOTIMPL;
    }
    return replace_full(table, mapping, &old, slots, names, table_slots,
                        server);
}

static apr_status_t make_first(rlr_table_t *table, mapping_t *mapping,
                               uint32_t *slots, const apr_array_header_t *names,
                               uint32_t table_slots, server_rec *server)
{
    apr_status_t rv = make_segment(mapping, table_slots, names->nelts, NULL,
                                   server);

    if (rv == APR_SUCCESS) {
        rv = attach_new(table, mapping, names, slots, server);
    }
    return rv;
}

apr_status_t rlr_segment_open(const rlr_table_t **table, uint32_t *slots,
                              const apr_array_header_t *names,
                              uint32_t table_slots, server_rec *server,
                              apr_pool_t *pool)
{
    apr_pool_t *process_pool = server->process->pool;
    rlr_table_t *view = apr_pcalloc(pool, sizeof(*view));
    mapping_t *mapping = find_mapping(process_pool);
    apr_status_t rv;

    *table = view;
    if (mapping != NULL) {
        rv = reopen(view, mapping, slots, names, table_slots, server);
        if (rv != APR_ENOTIMPL) {
            return rv;
        }
    }
    else {
        mapping = apr_pcalloc(process_pool, sizeof(*mapping));
    }
    rv = make_first(view, mapping, slots, names, table_slots, server);
    if (rv == APR_SUCCESS) {
        /* The key is copied: this library may be unloaded at a restart. */
        apr_pool_userdata_set(mapping, MAPPING_KEY, NULL, process_pool);
    }
    return rv;
}
