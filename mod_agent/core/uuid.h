/* SPDX-License-Identifier: Apache-2.0 */
/* UUIDs of RFC 9562, versions 5 and 7, in their textual form. */
#ifndef AGENT_CORE_UUID_H
#define AGENT_CORE_UUID_H

#include <stdbool.h>

#include <apr_errno.h>

/* 36 characters and the terminating NUL. */
#define AGENT_UUID_SIZE 37

/*
 * Writes a new version 7 UUID: Unix milliseconds, then random bits, with a
 * counter so that ids of one process sort in the order of the calls.
 * Safe to call from any thread.
 */
void agent_uuid_v7(char out[AGENT_UUID_SIZE]);

/*
 * Writes the version 5 UUID of a name in the namespace of assistants: the id of
 * a graph's system assistant.
 */
void agent_uuid_v5(char out[AGENT_UUID_SIZE], const char *name);

/*
 * Parses 8-4-4-4-12 hexadecimal digits in either case, and writes them in lower
 * case. Any other notation is refused.
 */
bool agent_uuid_parse(char out[AGENT_UUID_SIZE], const char *text);

#endif
