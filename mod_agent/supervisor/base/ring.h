/* SPDX-License-Identifier: Apache-2.0 */
/* Loops over rings that static analysis understands. */
#ifndef AGENT_SUPERVISOR_RING_H
#define AGENT_SUPERVISOR_RING_H

#include "../../core/ring.h"

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

/*
 * Rings of which an element may be a member or not: its link is initialized
 * with APR_RING_ELEM_INIT(). Entering a ring twice and leaving it twice have no
 * effect.
 */
#define AGENT_RING_HAS(at, link) (APR_RING_NEXT(at, link) != (at))
#define AGENT_RING_ENTER(head, at, type, link)                                 \
    do {                                                                       \
        if (!AGENT_RING_HAS(at, link)) {                                       \
            APR_RING_INSERT_TAIL(head, at, type, link);                        \
        }                                                                      \
    } while (0)
#define AGENT_RING_LEAVE(at, link)                                             \
    do {                                                                       \
        APR_RING_REMOVE(at, link);                                             \
        APR_RING_ELEM_INIT(at, link);                                          \
    } while (0)

#endif
