/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the shared memory over restarts. The parent stores the mapping in its
 * process pool. Children inherit the mapping: when the parent replaces the
 * segment, those of the old configuration continue with the old one. */
#include "shm.h"

#include <sys/mman.h>

#include <apr_general.h>
#include <apr_strings.h>

#include "counter/carry.h"
#include "counter/segment.h"
#include "private.h"

/* The number is the layout of mapping_t: another release of the module, loaded
 * by the same parent at a restart, must not misread it. */
#define MAPPING_KEY "mod_ratelimit_regional:mapping:1"
#define STORE_KEY   "mod_ratelimit_regional:store-mapping:1"

/* Rows for rules that are added at later restarts. */
#define SPARE_RULES 64

/* Linux; elsewhere pages are allocated at their first use. */
#ifndef MAP_POPULATE
#define MAP_POPULATE 0
#endif

/* In the process pool. */
typedef struct mapping_t {
    void *memory;
    size_t size;
    /* The configured size. */
    uint32_t slots;
} mapping_t;

/* NULL at the first start. */
static mapping_t *find_mapping(const char *key, apr_pool_t *process_pool)
{
    void *mapping = NULL;

    apr_pool_userdata_get(&mapping, key, process_pool);
    return mapping;
}

/* Maps zeroed memory that children share. All pages are allocated at once, so
 * that no request waits for a page or fails to get one. */
static apr_status_t map_memory(mapping_t *mapping, uint32_t slots, size_t size)
{
    mapping->slots = slots;
    mapping->size = size;
    mapping->memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    return mapping->memory != MAP_FAILED ? APR_SUCCESS : apr_get_os_error();
}

/* Logs errors. */
static apr_status_t map_segment(mapping_t *mapping, uint32_t slots,
                                uint32_t rules, server_rec *server)
{
    apr_status_t rv = map_memory(mapping, slots,
                                 rlr_segment_size(slots, rules));

    if (rv == APR_SUCCESS) {
        return APR_SUCCESS;
    }
    ap_log_error(APLOG_MARK, APLOG_ERR, rv, server,
                 RLR_LOGNO(0107) "RateLimitTable %u: no shared memory (%lu KB)",
                 slots, (unsigned long)(mapping->size / 1024));
    return rv;
}

/* Creates a segment; secret NULL: a random one. Logs errors. */
static apr_status_t create_segment(mapping_t *mapping, uint32_t slots,
                                   int names, const unsigned char *secret,
                                   server_rec *server)
{
    unsigned char fresh[RLR_TABLE_SECRET_SIZE];
    uint32_t rules = (uint32_t)names + SPARE_RULES;
    rlr_table_status_t status = RLR_TABLE_OK;
    apr_status_t rv;

    if (rules > RLR_TABLE_ROWS_MAX) {
        rules = RLR_TABLE_ROWS_MAX;
    }
    rv = map_segment(mapping, slots, rules, server);
    if (rv != APR_SUCCESS) {
        return rv;
    }
    if (secret == NULL) {
        rv = apr_generate_random_bytes(fresh, sizeof(fresh));
        secret = fresh;
    }
    if (rv == APR_SUCCESS) {
        status = rlr_segment_create(mapping->memory, mapping->size, slots,
                                    rules, secret);
    }
    if (rv != APR_SUCCESS || status != RLR_TABLE_OK) {
        ap_log_error(APLOG_MARK, APLOG_ERR, rv, server,
                     RLR_LOGNO(0108) "the shared table could not be created "
                                     "(status %d)",
                     (int)status);
        munmap(mapping->memory, mapping->size);
        return APR_EGENERAL;
    }
    return APR_SUCCESS;
}

static rlr_table_status_t attach(rlr_table_t *table, const mapping_t *mapping,
                                 const apr_array_header_t *names,
                                 uint32_t *rows)
{
    return rlr_segment_attach(table, mapping->memory, mapping->size,
                              (const char *const *)names->elts,
                              (uint32_t)names->nelts, rows);
}

static apr_status_t attach_new(rlr_table_t *table, const mapping_t *mapping,
                               const apr_array_header_t *names, uint32_t *rows,
                               server_rec *server)
{
    rlr_table_status_t status = attach(table, mapping, names, rows);

    if (status != RLR_TABLE_OK) {
        ap_log_error(
            APLOG_MARK, APLOG_ERR, 0, server,
            RLR_LOGNO(0109) "the shared table could not be attached for "
                            "%d rules (status %d)",
            names->nelts, (int)status);
        munmap(mapping->memory, mapping->size);
        return APR_EGENERAL;
    }
    return APR_SUCCESS;
}

/* The memory from before the restart, if there is one. */
static bool find_shared(rlr_shared_t *shared, server_rec *server)
{
    const mapping_t *mapping = find_mapping(STORE_KEY, server->process->pool);

    return mapping != NULL
        && rlr_shared_attach(shared, mapping->memory, mapping->size);
}

/* The share of the store was counted in the table that this one replaces. */
static void change_table(server_rec *server)
{
    rlr_shared_t shared;

    if (find_shared(&shared, server)) {
        rlr_shared_change_table(&shared);
    }
}

/* Replaces the segment by one of another size, or with more rows. */
static apr_status_t replace(rlr_table_t *table, mapping_t *mapping,
                            const rlr_table_t *old, uint32_t *rows,
                            const apr_array_header_t *names,
                            uint32_t table_slots, server_rec *server)
{
    mapping_t next;
    rlr_table_status_t status;
    apr_status_t rv = create_segment(&next, table_slots, names->nelts,
                                     rlr_segment_secret(old), server);

    if (rv == APR_SUCCESS) {
        rv = attach_new(table, &next, names, rows, server);
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    status = rlr_carry_over(table, old, &rlr_clock_monotonic);
    ap_log_error(APLOG_MARK, APLOG_NOTICE, 0, server,
                 RLR_LOGNO(0110) "the shared table was replaced by one of %u "
                                 "slots (carry-over: status %d); until the "
                                 "old children exit, both count",
                 table_slots, (int)status);
    change_table(server);
    munmap(mapping->memory, mapping->size);
    *mapping = next;
    return APR_SUCCESS;
}

/* Attaches a segment without rows for the new rules, to copy from. */
static rlr_table_status_t attach_full(rlr_table_t *old,
                                      const mapping_t *mapping)
{
    return rlr_segment_attach(old, mapping->memory, mapping->size, NULL, 0,
                              NULL);
}

/* The old segment has too few rows. Tries the old size if the new one fails. */
static apr_status_t replace_full(rlr_table_t *table, mapping_t *mapping,
                                 const rlr_table_t *old, uint32_t *rows,
                                 const apr_array_header_t *names,
                                 uint32_t table_slots, server_rec *server)
{
    apr_status_t rv = replace(table, mapping, old, rows, names, table_slots,
                              server);

    return rv == APR_SUCCESS || mapping->slots == table_slots
        ? rv
        : replace(table, mapping, old, rows, names, mapping->slots, server);
}

/* Attaches the segment from before the restart; replaces it for another size,
 * and keeps it if that fails. */
static apr_status_t reopen(rlr_table_t *table, mapping_t *mapping,
                           uint32_t *rows, const apr_array_header_t *names,
                           uint32_t table_slots, server_rec *server)
{
    rlr_table_status_t status = attach(table, mapping, names, rows);
    rlr_table_t old = *table;

    if (status == RLR_TABLE_OK && mapping->slots == table_slots) {
        return APR_SUCCESS;
    }
    if (status == RLR_TABLE_OK) {
        if (replace(table, mapping, &old, rows, names, table_slots, server)
            == APR_SUCCESS) {
            return APR_SUCCESS;
        }
        return attach(table, mapping, names, rows) == RLR_TABLE_OK
            ? APR_SUCCESS
            : APR_EGENERAL;
    }
    if (status != RLR_TABLE_ROWS_FULL
        || attach_full(&old, mapping) != RLR_TABLE_OK) {
        ap_log_error(
            APLOG_MARK, APLOG_WARNING, 0, server,
            RLR_LOGNO(0111) "the shared table of another release is not "
                            "used: counters start at zero");
        munmap(mapping->memory, mapping->size);
        return APR_ENOTIMPL;
    }
    return replace_full(table, mapping, &old, rows, names, table_slots, server);
}

static apr_status_t create_first(rlr_table_t *table, mapping_t *mapping,
                                 uint32_t *rows,
                                 const apr_array_header_t *names,
                                 uint32_t table_slots, server_rec *server)
{
    apr_status_t rv = create_segment(mapping, table_slots, names->nelts, NULL,
                                     server);

    if (rv == APR_SUCCESS) {
        rv = attach_new(table, mapping, names, rows, server);
    }
    return rv;
}

apr_status_t rlr_shm_open(const rlr_table_t **table, uint32_t *rows,
                          const apr_array_header_t *names, uint32_t table_slots,
                          server_rec *server, apr_pool_t *pool)
{
    apr_pool_t *process_pool = server->process->pool;
    rlr_table_t *view = apr_pcalloc(pool, sizeof(*view));
    mapping_t *mapping = find_mapping(MAPPING_KEY, process_pool);
    apr_status_t rv;

    *table = view;
    if (mapping != NULL) {
        rv = reopen(view, mapping, rows, names, table_slots, server);
        if (rv != APR_ENOTIMPL) {
            return rv;
        }
    }
    else {
        mapping = apr_pcalloc(process_pool, sizeof(*mapping));
    }
    rv = create_first(view, mapping, rows, names, table_slots, server);
    if (rv == APR_SUCCESS) {
        /* The key is copied: this library may be unloaded at a restart. */
        apr_pool_userdata_set(mapping, MAPPING_KEY, NULL, process_pool);
        change_table(server);
    }
    return rv;
}

/* ---- The memory of a store ---- */

static apr_status_t create_shared(rlr_shared_t *shared, mapping_t *mapping,
                                  uint32_t leases)
{
    unsigned char id[RLR_MESSAGE_ID_BYTES];
    unsigned char secret[RLR_SHARED_SECRET_BYTES];
    apr_status_t rv = apr_generate_random_bytes(id, sizeof(id));

    if (rv == APR_SUCCESS) {
        rv = apr_generate_random_bytes(secret, sizeof(secret));
    }
    if (rv == APR_SUCCESS) {
        rv = map_memory(mapping, leases, rlr_shared_size(leases));
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    return rlr_shared_create(shared, mapping->memory, leases, id, secret)
        ? APR_SUCCESS
        : APR_ENOTIMPL;
}

/* Attaches the memory from before the restart; APR_ENOTIMPL: it is of another
 * release. Its leases cannot move while children from before the restart use
 * them. */
static apr_status_t reopen_shared(rlr_shared_t *shared,
                                  const mapping_t *mapping,
                                  uint32_t table_slots, server_rec *server)
{
    if (!rlr_shared_attach(shared, mapping->memory, mapping->size)) {
        ap_log_error(APLOG_MARK, APLOG_WARNING, 0, server,
                     RLR_LOGNO(0128) "RateLimitStore: the leases of another "
                                     "release are not used: to the store this "
                                     "is another host until httpd is stopped "
                                     "and started");
        munmap(mapping->memory, mapping->size);
        return APR_ENOTIMPL;
    }
    if (mapping->slots != table_slots) {
        ap_log_error(APLOG_MARK, APLOG_WARNING, 0, server,
                     RLR_LOGNO(0129) "RateLimitTable %u: the leases of "
                                     "RateLimitStore remain those of %u until "
                                     "httpd is stopped and started",
                     table_slots, mapping->slots);
    }
    return APR_SUCCESS;
}

apr_status_t rlr_shm_open_shared(rlr_shared_t *shared, uint32_t table_slots,
                                 server_rec *server)
{
    apr_pool_t *process_pool = server->process->pool;
    mapping_t *mapping = find_mapping(STORE_KEY, process_pool);
    apr_status_t rv;

    if (mapping == NULL) {
        mapping = apr_pcalloc(process_pool, sizeof(*mapping));
    }
    else if (reopen_shared(shared, mapping, table_slots, server)
             == APR_SUCCESS) {
        return APR_SUCCESS;
    }
    rv = create_shared(shared, mapping, table_slots);
    if (rv != APR_SUCCESS) {
        ap_log_error(APLOG_MARK, APLOG_ERR, rv, server,
                     RLR_LOGNO(0118) "RateLimitStore: no shared memory for "
                                     "%u leases",
                     table_slots);
        return rv;
    }
    apr_pool_userdata_set(mapping, STORE_KEY, NULL, process_pool);
    return APR_SUCCESS;
}
