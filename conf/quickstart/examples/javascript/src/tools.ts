// SPDX-License-Identifier: Apache-2.0
/** The tools of the agent. */

import { tool } from "@langchain/core/tools";
import { interrupt } from "@langchain/langgraph";
import { z } from "zod";

const PRICES = new Map([
  ["teapot", 24],
  ["kettle", 39],
  ["cup", 7],
]);

function describePrice(product: string, quantity = 1): string {
  return `${PRICES.get(product)! * quantity} ${process.env.SHOP_CURRENCY ?? "EUR"}`;
}

const findPrice = tool(
  ({ product }) =>
    PRICES.has(product)
      ? `A ${product} is ${describePrice(product)}.`
      : `There is no ${product}.`,
  {
    name: "find_price",
    description: "Find the price of a product.",
    schema: z.object({ product: z.string() }),
  },
);

const placeOrder = tool(
  ({ product, quantity }) => {
    if (!PRICES.has(product)) {
      return `There is no ${product}.`;
    }
    const price = describePrice(product, quantity);
    // The run stops here. It goes on, from the beginning of this function, when
    // a client resumes the thread; interrupt() then returns what the client sent.
    const answer = interrupt({
      question: `Order ${quantity} x ${product} for ${price}?`,
      product,
      quantity,
    });
    return answer === "yes"
      ? `Ordered ${quantity} x ${product} for ${price}.`
      : "The order was not approved.";
  },
  {
    name: "place_order",
    description: "Order a product; a person has to approve it first.",
    schema: z.object({ product: z.string(), quantity: z.number().int().positive() }),
  },
);

export const tools = [findPrice, placeOrder];
