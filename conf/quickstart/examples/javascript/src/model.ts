// SPDX-License-Identifier: Apache-2.0
/**
 * A chat model that needs no key and no network: it follows a script.
 *
 * `order 2 cups` and `price of a kettle` call a tool; the text of a tool is
 * repeated; everything else is answered with what the agent can do.
 */

import type { CallbackManagerForLLMRun } from "@langchain/core/callbacks/manager";
import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import {
  AIMessage,
  AIMessageChunk,
  type BaseMessage,
} from "@langchain/core/messages";
import { ChatGenerationChunk, type ChatResult } from "@langchain/core/outputs";

const ORDER = /\border (\d+) (?:x )?([a-z]+?)s?\b/i;
const PRICE = /\bprice of (?:an? |the )?([a-z]+?)s?\b/i;
const HELP =
  "I can find prices (price of a kettle) and place orders (order 2 cups).";

function callTool(name: string, args: Record<string, unknown>, count: number) {
  return new AIMessage({
    content: "",
    tool_calls: [{ name, args, id: `call_${count}`, type: "tool_call" }],
  });
}

function compose(messages: BaseMessage[]): AIMessage {
  const last = messages[messages.length - 1];
  if (last.getType() === "tool") {
    return new AIMessage(last.text);
  }
  const order = ORDER.exec(last.text);
  if (order) {
    const args = { product: order[2].toLowerCase(), quantity: Number(order[1]) };
    return callTool("place_order", args, messages.length);
  }
  const price = PRICE.exec(last.text);
  return price
    ? callTool("find_price", { product: price[1].toLowerCase() }, messages.length)
    : new AIMessage(HELP);
}

/** Streams its answers word by word, as models do. */
export class ScriptedModel extends BaseChatModel {
  _llmType(): string {
    return "scripted";
  }

  async _generate(messages: BaseMessage[]): Promise<ChatResult> {
    const message = compose(messages);
    return { generations: [{ text: message.text, message }] };
  }

  async *_streamResponseChunks(
    messages: BaseMessage[],
    _options: this["ParsedCallOptions"],
    runManager?: CallbackManagerForLLMRun,
  ): AsyncGenerator<ChatGenerationChunk> {
    const { text, tool_calls } = compose(messages);
    const words = tool_calls?.length ? [""] : (text.match(/\S+\s*/g) ?? []);
    for (const word of words) {
      const message = new AIMessageChunk({ content: word, tool_calls });
      yield new ChatGenerationChunk({ text: word, message });
      await runManager?.handleLLMNewToken(word);
    }
  }
}
