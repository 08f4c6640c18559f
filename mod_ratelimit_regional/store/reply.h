/* SPDX-License-Identifier: Apache-2.0 */
/* The reply to a call that is under way. */
#ifndef RLR_REPLY_H
#define RLR_REPLY_H

#include "flight.h"

/* Takes the reply, after waiting for it if it has not come; a report is sent
 * first. Finishes the pending requests of the call, and sets the exchange's
 * error if it has none. */
void rlr_reply_take(rlr_exchange_t *exchange, rlr_flight_t *flight);

/* Finishes the pending requests of a call that has no reply. */
void rlr_reply_abandon(rlr_exchange_t *exchange, const rlr_flight_t *flight);

#endif
