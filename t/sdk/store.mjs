// SPDX-License-Identifier: Apache-2.0
// The store: items, searches, namespaces.
import { connect, scenario } from './tap.mjs';

const client = connect();
const { store } = client;
const keysOf = ({ items }) => items.map(({ key }) => key);

scenario('store items', async (t) => {
    const namespace = ['sdk', 'js', 'Ännchen'];
    t.is(await store.getItem(namespace, 'k'), null, 'getItem returns null when there is no item');
    t.is(await store.putItem(namespace, 'k', { text: 'Hällo', n: 1 }), undefined, 'putItem returns nothing');
    const item = await store.getItem(namespace, 'k');
    t.is([item.namespace, item.key, item.value], [namespace, 'k', { text: 'Hällo', n: 1 }], 'getItem returns the item');
    t.ok(new Date(item.createdAt) <= new Date(item.updatedAt), 'an item has its times', item);
    await store.putItem(namespace, 'k', { text: 'two' }, { index: ['text'], ttl: 10 });
    const second = await store.getItem(namespace, 'k', { refreshTtl: false });
    t.is([second.value, second.createdAt], [{ text: 'two' }, item.createdAt], 'putItem replaces the value and keeps createdAt');
    t.ok(second.updatedAt > item.updatedAt, 'updatedAt grows', second);
    await store.deleteItem(namespace, 'k');
    t.is(await store.getItem(namespace, 'k'), null, 'deleteItem deletes the item');
    t.is(await store.deleteItem(namespace, 'k'), undefined, 'deleteItem of nothing succeeds');
    t.is((await t.errorOf(store.putItem([], 'k', {}))).status, 422, 'an empty namespace is 422');
});

scenario('store searches', async (t) => {
    for (let n = 1; n <= 12; n += 1) {
        await store.putItem(['search-js', n % 2 ? 'odd' : 'even'], `k${n}`, { n });
    }
    t.is(keysOf(await store.searchItems(['search-js'])), [12, 11, 10, 9, 8, 7, 6, 5, 4, 3].map((n) => `k${n}`),
        'searchItems returns ten items, the last updated first');
    t.is(keysOf(await store.searchItems(['search-js'], { limit: 1, offset: 10, query: 'n' })), ['k2'], 'limit and offset select a part');
    t.is(keysOf(await store.searchItems(['search-js', 'odd'], { filter: { n: { $gt: 3, $lte: 9 } } })), ['k9', 'k7', 'k5'],
        'a filter has operators');
    t.is(keysOf(await store.searchItems(['search'])), [], 'a prefix is matched label by label');
});

scenario('store namespaces', async (t) => {
    for (const namespace of [['tree-js', 'a'], ['tree-js', 'a', 'b'], ['tree-js', 'c', 'b']]) {
        await store.putItem(namespace, 'k', {});
    }
    t.is(await store.listNamespaces({ prefix: ['tree-js'] }), { namespaces: [['tree-js', 'a'], ['tree-js', 'a', 'b'], ['tree-js', 'c', 'b']] },
        'listNamespaces returns them in order');
    t.is(await store.listNamespaces({ prefix: ['tree-js'], suffix: ['b'], maxDepth: 2, limit: 1, offset: 1 }), { namespaces: [['tree-js', 'c']] },
        'listNamespaces has conditions');
});
