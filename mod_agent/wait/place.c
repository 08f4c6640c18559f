/* SPDX-License-Identifier: Apache-2.0 */
/* Places of requests that wait for their clients; see place.h. */
#include "state.h"

#include <sys/socket.h>

static void leave_locked(agent_place_t *place)
{
    APR_RING_REMOVE(place, link);
    place->is_held = false;
    place->waits->free_places++;
}

/* The MPM has the connection, and takes the end of its input for something to
 * read: the request's next turn tells the client. */
static void lose_locked(agent_place_t *place)
{
    leave_locked(place);
    place->is_lost = true;
    shutdown(place->client_fd, SHUT_RD);
}

agent_place_t *agent_place_take(agent_waits_t *waits, int client_fd,
                                apr_pool_t *pool)
{
    agent_place_t *place = apr_pcalloc(pool, sizeof(*place));

    place->waits = waits;
    place->client_fd = client_fd;
    place->is_held = true;
    apr_thread_mutex_lock(waits->mutex);
    if (waits->free_places == 0) {
        lose_locked(APR_RING_FIRST(&waits->places));
    }
    waits->free_places--;
    APR_RING_INSERT_TAIL(&waits->places, place, agent_place_t, link);
    apr_thread_mutex_unlock(waits->mutex);
    return place;
}

bool agent_place_return(agent_place_t *place)
{
    apr_thread_mutex_lock(place->waits->mutex);
    if (place->is_held) {
        leave_locked(place);
    }
    apr_thread_mutex_unlock(place->waits->mutex);
    return !place->is_lost;
}
