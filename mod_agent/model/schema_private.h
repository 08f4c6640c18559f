/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the schemas. */
#ifndef AGENT_MODEL_SCHEMA_PRIVATE_H
#define AGENT_MODEL_SCHEMA_PRIVATE_H

#include "check.h"
#include "schema.h"

/* Checks a body that must be an object with these members; *out: its fields, in
 * path->pool. */
apr_status_t agent_schema_check_body(const agent_fields_t **out,
                                     const agent_check_t *members,
                                     agent_raw_t body,
                                     const agent_check_path_t *path);

/* Sets the error about a member of the body at path, and returns it. */
apr_status_t agent_schema_refuse(const agent_check_path_t *path,
                                 const char *key, const char *expected);

/* The longest namespace of a graph. */
#define AGENT_NS_BYTES 2048

/* Accepts a checkpoint_map: an object of UUIDs, with a member for each graph.
 */
apr_status_t agent_schema_check_map(const agent_check_t *check,
                                    agent_raw_t value,
                                    const agent_check_path_t *path);

/* The members of an object that names a checkpoint. */
extern const agent_check_t agent_schema_checkpoint_members[];

/* Checks that all members that name a checkpoint name the same one, and that
 * checkpoint_map is of it. */
apr_status_t agent_schema_check_checkpoints(const agent_fields_t *fields,
                                            const agent_check_path_t *path);

/* Checks that no member names a checkpoint. */
apr_status_t agent_schema_check_stateless(const agent_fields_t *run,
                                          const agent_check_path_t *path);

/* Checks that the checkpoint's thread, if it is given, is thread_id. */
apr_status_t agent_schema_check_thread(const agent_fields_t *fields,
                                       const char *thread_id,
                                       const agent_check_path_t *path);

#endif
