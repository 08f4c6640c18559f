/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lock of a registry. The prefork MPM ends a child within the handler of a
 * signal, whatever its thread is doing, and the registry's end takes the lock:
 * with that MPM the signals wait while the thread holds it, else the child
 * would wait for itself until it is killed.
 */
#ifndef AGENT_WAIT_LOCK_H
#define AGENT_WAIT_LOCK_H

#include "state.h"

void agent_registry_lock(agent_waiter_registry_t *registry);
void agent_registry_unlock(agent_waiter_registry_t *registry);

#endif
