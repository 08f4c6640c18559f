/* SPDX-License-Identifier: Apache-2.0 */
/*
 * APR's rings with the standard offsetof: APR's own takes the address of a
 * member of a null pointer, which is undefined behaviour.
 */
#ifndef AGENT_CORE_RING_H
#define AGENT_CORE_RING_H

#include <stddef.h>

#include <apr_ring.h>

#undef APR_OFFSETOF
#define APR_OFFSETOF(type, field) offsetof(type, field)

#endif
