// SPDX-License-Identifier: Apache-2.0
// The first message to the model.
export const SYSTEM_PROMPT_TEMPLATE = 'You are a helpful assistant. The time is {system_time}.';
