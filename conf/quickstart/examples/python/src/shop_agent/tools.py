# SPDX-License-Identifier: Apache-2.0
"""The tools of the agent."""

import os

from langchain_core.tools import tool
from langgraph.types import interrupt

PRICES = {"teapot": 24, "kettle": 39, "cup": 7}


def _price(product: str, quantity: int = 1) -> str:
    return f"{PRICES[product] * quantity} {os.environ.get('SHOP_CURRENCY', 'EUR')}"


@tool
def find_price(product: str) -> str:
    """Find the price of a product."""
    if product not in PRICES:
        return f"There is no {product}."
    return f"A {product} is {_price(product)}."


@tool
def place_order(product: str, quantity: int) -> str:
    """Order a product; a person has to approve it first."""
    if product not in PRICES:
        return f"There is no {product}."
    price = _price(product, quantity)
    # The run stops here. It goes on, from the beginning of this function, when a
    # client resumes the thread; interrupt() then returns what the client sent.
    answer = interrupt(
        {
            "question": f"Order {quantity} x {product} for {price}?",
            "product": product,
            "quantity": quantity,
        }
    )
    if answer != "yes":
        return "The order was not approved."
    return f"Ordered {quantity} x {product} for {price}."


TOOLS = [find_price, place_order]
