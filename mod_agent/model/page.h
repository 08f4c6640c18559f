/* SPDX-License-Identifier: Apache-2.0 */
/* A page of records, or one that may be as large. */
#ifndef AGENT_MODEL_PAGE_H
#define AGENT_MODEL_PAGE_H

/* A parameter max_bytes: composing as much takes some milliseconds. */
#define AGENT_PAGE_LIMIT "262144"

/* Borrowed from a result, or in pool. */
typedef struct agent_page_t {
    /* JSON text; NULL: the records have more than max_bytes, and those beyond
     * that were not read. max_bytes NULL: any number, of about 16 MB. */
    const char *body;
    /* The offset of the next page; NULL after the last one. */
    const char *next;
    /* Number of the records on all pages; NULL where that is not counted. */
    const char *total;
} agent_page_t;

#endif
