/* SPDX-License-Identifier: Apache-2.0 */
/*
 * APR's rings with the standard offsetof (APR's own subtracts null pointers,
 * which is undefined behaviour), and loops over them that static analysis
 * understands.
 */
#ifndef AGENT_SUPERVISOR_RING_H
#define AGENT_SUPERVISOR_RING_H

#include <stddef.h>

#include <apr_ring.h>

#undef APR_OFFSETOF
#define APR_OFFSETOF(type, field) offsetof(type, field)

/* For each element; the body must not remove it. */
#define AGENT_RING_EACH(at, head, type, link)                                  \
    for ((at) = APR_RING_FIRST(head);                                          \
         (at) != APR_RING_SENTINEL(head, type, link);                          \
         (at) = APR_RING_NEXT(at, link))

/* For each element; the body may remove it. */
#define AGENT_RING_EACH_SAFE(at, next, head, type, link)                       \
    for ((at) = APR_RING_FIRST(head), (next) = APR_RING_NEXT(at, link);        \
         (at) != APR_RING_SENTINEL(head, type, link);                          \
         (at) = (next), (next) = APR_RING_NEXT(at, link))

#endif
