// SPDX-License-Identifier: Apache-2.0
// The model: `demo/scripted` needs no key. It searches for what the user names, then repeats the result.
import { BaseChatModel } from '@langchain/core/language_models/chat_models';
import { AIMessage, type BaseMessage } from '@langchain/core/messages';
import type { ChatResult } from '@langchain/core/outputs';

class Scripted extends BaseChatModel {
    constructor(private readonly model: string) {
        super({});
    }

    _llmType(): string {
        return 'scripted';
    }

    bindTools(tools: { name: string }[]): this {
        if (tools.map(({ name }) => name).join() !== 'search') {
            throw new Error('other tools');
        }
        return this;
    }

    async _generate(messages: BaseMessage[]): Promise<ChatResult> {
        const last = messages.at(-1)!;
        const message = last.getType() === 'human'
            ? new AIMessage({ content: '', tool_calls: [
                { name: 'search', args: { query: last.text }, id: `call-${messages.length}`, type: 'tool_call' }] })
            : new AIMessage(`${this.model}: ${messages[0].text.split('.')[0]}. ${last.text}`);
        return { generations: [{ text: message.text, message }] };
    }
}

export async function loadChatModel(fullySpecifiedName: string): Promise<Scripted> {
    return new Scripted(fullySpecifiedName.slice(fullySpecifiedName.indexOf('/') + 1));
}
