// SPDX-License-Identifier: Apache-2.0
// The tools of the agent.
import { tool } from '@langchain/core/tools';
import { z } from 'zod';

const search = tool(async ({ query }: { query: string }) => JSON.stringify({ query, max_results: 3 }), {
    name: 'search', description: 'Search for pages about something.', schema: z.object({ query: z.string() }) });

export const TOOLS = [search];
